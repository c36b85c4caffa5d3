//! Turns: evaluations take their samples alternately, so that drift affects all of them alike.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;

/// A group of evaluations that take turns, one sample each.
///
/// Clocks, temperatures and other load change over time. Kernels that are measured one after the other are therefore
/// measured under different conditions; kernels that take turns are not, and can be compared more reliably.
///
/// Create an [`Evaluation`](super::Evaluation) per kernel, each with a [`turn`](super::Evaluation::turn), and run their
/// futures concurrently, e.g. on one thread with `join_all`. Only one makes progress at a time. Each is validated, warmed up
/// and calibrated in its first turn, and takes one sample in each further turn. Since another kernel ran before it, an
/// untimed call precedes the sample, unless the evaluation is cold or flushes caches. The time that an evaluation waits does
/// not count against its budget.
///
/// A member that is neither evaluated nor dropped blocks the others when its turn comes.
///
/// ```
/// # use std::time::Duration;
/// # use runtime_core::{ModuleSource, Runtime, write};
/// # use runtime_core::evaluate::Turns;
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let module = device.load(&unsafe { ModuleSource::native("null", "old = fill_f32\nnew = fill_f32") })?;
/// # let (old, new) = (module.kernel("old")?, module.kernel("new")?);
/// # let x = device.zeros::<f32>([8])?;
/// let turns = Turns::new();
/// let benchmarks = [&old, &new].map(|kernel| {
///     let turn = turns.join(); // both join before the first one begins
///     let benchmark = device.bench(kernel, (1, 1), (write(&x), 1.0f32)).samples(7);
/// #   let benchmark = benchmark.sample_time(Duration::from_millis(1));
///     benchmark.configure(|evaluation| evaluation.turn = Some(turn))
/// });
/// let [old, new] = std::thread::scope(|threads| {
///     benchmarks.map(|benchmark| threads.spawn(|| benchmark.run())).map(|thread| thread.join().expect("no panic"))
/// });
/// let (old, new) = (old?, new?);
/// println!("{:.2} times as fast", old.statistics.median_ns / new.statistics.median_ns);
/// assert!(old.is_complete() && new.is_complete());
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Turns(Arc<Mutex<Order>>);

#[derive(Debug, Default)]
struct Order {
    members: Vec<Member>,
    /// Index of the member whose turn it is.
    current: usize,
    joined: u64,
}

#[derive(Debug)]
struct Member {
    number: u64,
    waker: Option<Waker>,
}

impl Turns {
    /// An empty group.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a member, whose turn comes after those of the earlier ones.
    #[must_use]
    pub fn join(&self) -> Turn {
        let mut order = self.0.lock();
        let number = order.joined;
        order.joined += 1;
        order.members.push(Member { number, waker: None });
        Turn { order: Arc::clone(&self.0), number }
    }
}

/// A member of [`Turns`], which leaves the group when it is dropped.
#[derive(Debug)]
pub struct Turn {
    order: Arc<Mutex<Order>>,
    number: u64,
}

impl Turn {
    /// Waits until it is this member's turn.
    pub(crate) async fn wait(&mut self) {
        poll_fn(|context| {
            let waker = context.waker().clone();
            let mut order = self.order.lock();
            let current = order.current;
            let index = order.members.iter().position(|member| member.number == self.number);
            let Some(index) = index.filter(|index| *index != current) else { return Poll::Ready(()) };
            let previous = order.members[index].waker.replace(waker);
            // Nothing of an executor is called with the lock held: it may poll or drop another member at once.
            drop(order);
            drop(previous);
            Poll::Pending
        })
        .await;
    }

    /// Ends this turn and waits for the next one; returns whether others had theirs in between.
    pub(crate) async fn pass(&mut self) -> bool {
        let (has_others, waker) = self.order.lock().advance();
        if let Some(waker) = waker {
            waker.wake();
        }
        if has_others {
            self.wait().await;
        }
        has_others
    }
}

impl Order {
    /// Makes it the next member's turn; returns whether that is another one, and what wakes it.
    fn advance(&mut self) -> (bool, Option<Waker>) {
        self.current = (self.current + 1) % self.members.len().max(1);
        (self.members.len() > 1, self.waker())
    }

    /// Removes a member; returns what wakes the one whose turn it is now, and the member.
    fn leave(&mut self, number: u64) -> (Option<Waker>, Option<Member>) {
        let Some(index) = self.members.iter().position(|member| member.number == number) else {
            return (None, None);
        };
        let left = self.members.remove(index);
        if index < self.current {
            self.current -= 1;
        }
        self.current %= self.members.len().max(1);
        (self.waker(), Some(left))
    }

    fn waker(&mut self) -> Option<Waker> {
        self.members.get_mut(self.current).and_then(|member| member.waker.take())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let (waker, left) = self.order.lock().leave(self.number);
        drop(left);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::Future;
    use std::pin::Pin;
    use std::task::Context;

    use super::*;

    type Member<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

    /// Polls all members, in the order of their numbers or against it, until all have ended.
    fn run_all(mut members: Vec<Member<'_>>, backwards: bool) {
        for _ in 0..100 {
            if backwards {
                members.reverse();
            }
            members.retain_mut(|member| {
                member.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending()
            });
            if backwards {
                members.reverse();
            }
            if members.is_empty() {
                return;
            }
        }
        panic!("the members wait for each other");
    }

    async fn take_turns(mut turn: Turn, name: char, count: usize, log: &RefCell<String>) {
        turn.wait().await;
        for index in 0..count {
            if index > 0 {
                turn.pass().await;
            }
            log.borrow_mut().push(name);
        }
    }

    #[test]
    fn members_take_turns_until_each_has_ended() {
        for backwards in [false, true] {
            let log = RefCell::new(String::new());
            let turns = Turns::new();
            let members = [('a', 3), ('b', 1), ('c', 5)];
            let members = members
                .map(|(name, count)| -> Member<'_> { Box::pin(take_turns(turns.join(), name, count, &log)) });
            run_all(members.into(), backwards);
            assert_eq!(*log.borrow(), "abcacaccc", "polled backwards: {backwards}");
        }
    }

    #[test]
    fn a_member_that_is_dropped_passes_its_turn_on() {
        let log = RefCell::new(String::new());
        let turns = Turns::new();
        let (first, second, third) = (turns.join(), turns.join(), turns.join());
        drop(first);
        let second: Member<'_> = Box::pin(take_turns(second, 'b', 2, &log));
        drop(third);
        run_all(vec![second], false);
        assert_eq!(*log.borrow(), "bb");
    }

    #[test]
    fn a_single_member_does_not_wait() {
        let turns = Turns::new();
        let mut turn = turns.join();
        let mut pass = Box::pin(turn.pass());
        let polled = pass.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(false));
    }

    #[test]
    fn the_next_member_is_woken() {
        let turns = Turns::new();
        let (mut first, mut second) = (turns.join(), turns.join());
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut waiting = Box::pin(second.wait());
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let mut pass = Box::pin(first.pass());
        assert!(pass.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert!(*woken.0.lock());
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
    }

    #[derive(Default)]
    struct Woken(Mutex<bool>);

    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            *self.0.lock() = true;
        }
    }
}
