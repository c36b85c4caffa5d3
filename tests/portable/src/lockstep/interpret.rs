//! The interpreter of random kernels: all invocations of a group execute each statement together.

use super::text::{INPUTS, text};
use super::{
    Array, Barrier, Block, COUNTERS, Form, Kernel, LOOPS, OUTPUTS, Place, Slot, Statement, functions,
    variable,
};
use crate::expect::Expect;
use crate::program::{Buffer, Check, Expectation, Program};
use crate::random::Random;
use crate::scalar::Kind;
use crate::tree::{Tree, Value, evaluate};

/// Why a kernel is invalid: a race, or a barrier that not all invocations reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(pub String);

type Outcome = Result<(), Invalid>;

/// The pending jump of an invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    No,
    Break,
    Continue,
    Return,
}

/// The accesses of a slot since the last barrier.
#[derive(Clone, Copy, Debug, Default)]
struct Accesses {
    writer: Option<usize>,
    /// One reader, and whether there are others.
    reader: Option<(usize, bool)>,
}

/// Shared memory with a record of its accesses.
#[derive(Clone, Debug)]
struct Shared {
    words: Vec<u32>,
    accesses: Vec<Accesses>,
}

/// A work-group in execution.
struct Group<'a> {
    kernel: &'a Kernel,
    input: &'a [u32],
    variables: Vec<Vec<Value>>,
    stop: Vec<Stop>,
    signed: Shared,
    unsigned: Shared,
    storage: Shared,
    cell: Shared,
    counters: [u32; COUNTERS],
    totals: &'a mut [u32],
    output: &'a mut [u32],
}

/// The kernel as a program, with arguments and expected results.
///
/// # Errors
/// The kernel is invalid.
pub fn program(kernel: &Kernel) -> Result<Program, Invalid> {
    let (n, groups) = (kernel.lanes(), kernel.groups as usize);
    let mut random = Random::new(77);
    let input: Vec<_> = (0..INPUTS).map(|_| random.bits()).collect();
    let mut output = vec![0xcdcd_cdcd; n * groups * OUTPUTS];
    let mut totals = vec![0; COUNTERS];
    let mut storage = Vec::new();
    for (index, output) in output.chunks_mut(n * OUTPUTS).enumerate() {
        let mut group = Group::new(kernel, index, &input, &mut totals, output);
        group.block(&kernel.body, &vec![true; n])?;
        group.write_outputs();
        storage.extend(group.storage.words);
    }
    let words = |words: &[u32]| words.iter().map(|word| u64::from(*word)).collect::<Vec<_>>();
    let zeros = |n: usize| vec![0; n];
    let expectations = [(1, &output), (2, &storage), (3, &totals)].map(|(buffer, words)| {
        let kind = if buffer == 2 { Kind::I32 } else { Kind::U32 };
        let expect = |(index, word): (usize, &u32)| Expectation {
            buffer,
            offset: index * 4,
            expect: Expect::bits(kind, u64::from(*word)),
        };
        words.iter().enumerate().map(expect).collect::<Vec<_>>()
    });
    Ok(Program {
        entry: kernel.entry.clone(),
        code: text(kernel),
        needs: Vec::new(),
        constants: Vec::new(),
        by_value: Vec::new(),
        element: None,
        groups: [kernel.groups, 1, 1],
        buffers: vec![
            Buffer::new(Kind::I32, false, &words(&input)),
            Buffer::new(Kind::U32, true, &vec![0xcdcd_cdcd; output.len()]),
            Buffer::new(Kind::I32, true, &zeros(storage.len())),
            Buffer::new(Kind::U32, true, &zeros(COUNTERS)),
        ],
        scalars: vec![(Kind::I32, u64::from(kernel.argument as u32))],
        checks: vec![Check { name: kernel.entry.clone(), expectations: expectations.concat() }],
        says: Vec::new(),
    })
}

impl Shared {
    fn new(words: Vec<u32>) -> Self {
        Self { accesses: vec![Accesses::default(); words.len()], words }
    }

    fn read(&mut self, lane: usize, at: usize) -> Result<u32, Invalid> {
        let accesses = &mut self.accesses[at];
        if accesses.writer.is_some_and(|writer| writer != lane) {
            return Err(Invalid(format!("invocation {lane} reads [{at}], which another invocation writes")));
        }
        accesses.reader = match accesses.reader {
            None => Some((lane, false)),
            Some((reader, others)) => Some((reader, others || reader != lane)),
        };
        Ok(self.words[at])
    }

    fn write(&mut self, lane: usize, at: usize, word: u32) -> Outcome {
        let accesses = &mut self.accesses[at];
        let read = accesses.reader.is_some_and(|(reader, others)| others || reader != lane);
        if read || accesses.writer.is_some_and(|writer| writer != lane) {
            return Err(Invalid(format!(
                "invocation {lane} writes [{at}], which another invocation accesses"
            )));
        }
        accesses.writer = Some(lane);
        self.words[at] = word;
        Ok(())
    }

    fn clear_accesses(&mut self) {
        self.accesses.fill(Accesses::default());
    }
}

impl<'a> Group<'a> {
    fn new(
        kernel: &'a Kernel,
        index: usize,
        input: &'a [u32],
        totals: &'a mut [u32],
        output: &'a mut [u32],
    ) -> Self {
        let n = kernel.lanes();
        let lane = |lid: usize| {
            let gid = index * n + lid;
            let mut values = vec![[0; 4]; variable::COUNTER + LOOPS];
            let (lid, gid) = (lid as u32, gid as u32);
            let words = [
                lid,
                gid.wrapping_mul(7).wrapping_sub(3),
                input[lid as usize % INPUTS],
                0,
                u32::MAX,
                lid ^ 5,
                gid,
                kernel.argument as u32,
                index as u32,
                2,
                lid,
                gid,
                index as u32,
                kernel.argument as u32,
            ];
            words.iter().enumerate().for_each(|(at, word)| values[at][0] = *word);
            values
        };
        let lids = 0..n as u32;
        Self {
            kernel,
            input,
            variables: (0..n).map(lane).collect(),
            stop: vec![Stop::No; n],
            signed: Shared::new(lids.clone().map(|lid| lid * 3).collect()),
            storage: Shared::new(lids.clone().map(|lid| (index * n) as u32 + lid).collect()),
            unsigned: Shared::new(lids.collect()),
            cell: Shared::new(vec![kernel.argument as u32]),
            counters: [0; COUNTERS],
            totals,
            output,
        }
    }

    /// Writes the variables of the invocations that did not return.
    fn write_outputs(&mut self) {
        for lane in 0..self.stop.len() {
            if self.stop[lane] == Stop::No {
                for variable in 0..variable::LID {
                    self.output[lane * OUTPUTS + variable] = self.variables[lane][variable][0];
                }
            }
        }
    }

    fn value(&self, lane: usize, tree: &Tree) -> u32 {
        evaluate(tree, &self.variables[lane])[0]
    }

    /// The invocations of `mask` that execute the next statement.
    fn running(&self, mask: &[bool]) -> Vec<bool> {
        mask.iter().zip(&self.stop).map(|(in_mask, stop)| *in_mask && *stop == Stop::No).collect()
    }

    fn block(&mut self, block: &Block, mask: &[bool]) -> Outcome {
        block.iter().try_for_each(|statement| {
            let running = self.running(mask);
            if running.contains(&true) { self.statement(statement, &running) } else { Ok(()) }
        })
    }

    fn statement(&mut self, statement: &Statement, mask: &[bool]) -> Outcome {
        match statement {
            Statement::If(condition, yes, no) => {
                let lanes = 0..mask.len();
                let holds: Vec<_> =
                    lanes.map(|lane| mask[lane] && self.value(lane, condition) != 0).collect();
                let fails: Vec<_> = mask.iter().zip(&holds).map(|(mask, holds)| *mask && !holds).collect();
                self.block(yes, &holds)?;
                self.block(no, &fails)
            }
            Statement::Switch(selector, cases) => {
                let selectors: Vec<_> = (0..mask.len()).map(|lane| self.value(lane, selector) % 4).collect();
                for (case, values) in cases.iter().zip([&[0][..], &[1, 2], &[3]]) {
                    let chosen = |(in_mask, selector): (&bool, &u32)| *in_mask && values.contains(selector);
                    let chosen: Vec<_> = mask.iter().zip(&selectors).map(chosen).collect();
                    self.block(case, &chosen)?;
                }
                self.resume(mask, Stop::Break);
                Ok(())
            }
            Statement::Loop(..) => self.run_loop(statement, mask),
            Statement::Barrier(barrier) => self.barrier(*barrier, mask),
            Statement::LoadCell(variable) => {
                self.barrier(Barrier::Workgroup, mask)?;
                for lane in lanes(mask) {
                    self.variables[lane][*variable][0] = self.cell.read(lane, 0)?;
                }
                self.barrier(Barrier::Workgroup, mask)
            }
            Statement::Call(function, variable, first, second) => {
                if functions::has_barrier(*function) && mask.contains(&false) {
                    return Err(Invalid("not all invocations reach a call with barriers".to_owned()));
                }
                let at = |lane: usize| {
                    let old = self.variables[lane][*variable][0];
                    (old as i32, self.value(lane, first) as i32, self.value(lane, second) as i32)
                };
                let arguments: Vec<_> = (0..mask.len()).map(at).collect();
                let results = functions::results(*function, &arguments);
                for lane in lanes(mask) {
                    self.variables[lane][*variable][0] = results[lane] as u32;
                }
                Ok(())
            }
            _ => lanes(mask).try_for_each(|lane| self.lane_statement(statement, lane)),
        }
    }

    fn run_loop(&mut self, statement: &Statement, mask: &[bool]) -> Outcome {
        let Statement::Loop(form, depth, limit, bound, body, continuing) = statement else { return Ok(()) };
        let counter = variable::COUNTER + depth;
        lanes(mask).for_each(|lane| self.variables[lane][counter][0] = 0);
        loop {
            if *form != Form::Continuing {
                self.leave(mask, counter, *limit, bound);
            }
            let running = self.running(mask);
            if !running.contains(&true) {
                break;
            }
            let step = |group: &mut Self| {
                lanes(&group.running(mask)).for_each(|lane| group.variables[lane][counter][0] += 1);
            };
            if *form == Form::While {
                step(self);
            }
            self.block(body, &running)?;
            self.resume(mask, Stop::Continue);
            match form {
                Form::For => step(self),
                Form::While => {}
                Form::Continuing => {
                    self.block(continuing, mask)?;
                    step(self);
                    self.leave(mask, counter, *limit, bound);
                }
            }
        }
        self.resume(mask, Stop::Break);
        Ok(())
    }

    /// Ends a loop for the invocations whose counter has reached its end.
    fn leave(&mut self, mask: &[bool], counter: usize, limit: i32, bound: &Tree) {
        for lane in lanes(&self.running(mask)) {
            let end = limit.min(self.value(lane, bound) as i32);
            if self.variables[lane][counter][0] as i32 >= end {
                self.stop[lane] = Stop::Break;
            }
        }
    }

    fn resume(&mut self, mask: &[bool], stop: Stop) {
        for lane in lanes(mask) {
            if self.stop[lane] == stop {
                self.stop[lane] = Stop::No;
            }
        }
    }

    fn barrier(&mut self, barrier: Barrier, mask: &[bool]) -> Outcome {
        if mask.contains(&false) {
            return Err(Invalid("not all invocations reach a barrier".to_owned()));
        }
        if barrier != Barrier::Storage {
            for shared in [&mut self.signed, &mut self.unsigned, &mut self.cell] {
                shared.clear_accesses();
            }
        }
        if barrier != Barrier::Workgroup {
            self.storage.clear_accesses();
        }
        Ok(())
    }

    /// Executes a statement for one invocation.
    fn lane_statement(&mut self, statement: &Statement, lane: usize) -> Outcome {
        match statement {
            Statement::Assign(to, tree) => self.variables[lane][*to][0] = self.value(lane, tree),
            Statement::Read(to, array, place) => {
                let at = self.place(lane, place);
                self.variables[lane][*to][0] = self.array(*array).read(lane, at)?;
            }
            Statement::Write(array, slot, tree) => {
                let (at, word) = (self.slot(lane, *slot), self.value(lane, tree));
                self.array(*array).write(lane, at, word)?;
            }
            Statement::Input(to, tree) => {
                self.variables[lane][*to][0] = self.input[self.value(lane, tree) as usize % INPUTS];
            }
            Statement::Output(slot, tree) => {
                self.output[lane * OUTPUTS + variable::LID + slot] = self.value(lane, tree);
            }
            Statement::Count(global, slot, tree) => {
                let word = self.value(lane, tree);
                let counter = if *global { &mut self.totals[*slot] } else { &mut self.counters[*slot] };
                *counter = count(*slot, *counter, word);
            }
            Statement::Counter(to, slot) => self.variables[lane][*to][0] = self.counters[*slot],
            Statement::SetCell(tree) if lane == 0 => {
                let word = self.value(lane, tree);
                self.cell.write(lane, 0, word)?;
            }
            Statement::Break => self.stop[lane] = Stop::Break,
            Statement::Continue => self.stop[lane] = Stop::Continue,
            Statement::Return => self.stop[lane] = Stop::Return,
            _ => {}
        }
        Ok(())
    }

    fn array(&mut self, array: Array) -> &mut Shared {
        match array {
            Array::Signed => &mut self.signed,
            Array::Unsigned => &mut self.unsigned,
            Array::Storage => &mut self.storage,
        }
    }

    fn slot(&self, lane: usize, slot: Slot) -> usize {
        match slot {
            Slot::Rotated(by) => (lane + by as usize) % self.kernel.lanes(),
            Slot::Reversed => self.kernel.lanes() - 1 - lane,
        }
    }

    fn place(&self, lane: usize, place: &Place) -> usize {
        match place {
            Place::Own(slot) => self.slot(lane, *slot),
            Place::Any(tree) => self.value(lane, tree) as usize % self.kernel.lanes(),
        }
    }
}

fn lanes(mask: &[bool]) -> impl Iterator<Item = usize> + use<> {
    let lanes: Vec<_> = (0..mask.len()).filter(|lane| mask[*lane]).collect();
    lanes.into_iter()
}

const fn count(slot: usize, counter: u32, word: u32) -> u32 {
    match slot {
        0 => counter.wrapping_add(word),
        1 if counter > word => counter,
        1 => word,
        2 => counter | word,
        _ => counter ^ word,
    }
}
