//! Removes what identifies a user or a machine.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Where the homes of users are.
const HOMES: [&str; 2] = ["/home/", "/Users/"];
/// Names that every machine has.
const PUBLIC: [&str; 3] = ["root", "localhost", "(none)"];

/// The names that a report must not contain.
#[derive(Debug)]
pub(super) struct Private {
    /// Home folders.
    homes: Vec<String>,
    /// Names of users.
    users: Vec<String>,
    /// Names of this machine.
    hosts: Vec<String>,
}

impl Private {
    /// The names of this process's user and machine.
    pub(super) fn of_process() -> Self {
        let mut private = Self {
            homes: std::env::var("HOME").into_iter().collect(),
            users: ["USER", "LOGNAME", "SUDO_USER"].into_iter().flat_map(std::env::var).collect(),
            hosts: std::env::var("HOSTNAME").into_iter().collect(),
        };
        if let Some((user, home)) = account() {
            private.users.push(user);
            private.homes.push(home);
        }
        let resolved = private.homes.iter().filter_map(|home| Path::new(home).canonicalize().ok());
        let resolved: Vec<_> = resolved.map(|home| home.display().to_string()).collect();
        private.homes.extend(resolved);
        private.hosts.extend(std::fs::read_to_string("/proc/sys/kernel/hostname"));
        private
    }

    /// The text with `~` for home folders, `<user>` and `<host>`.
    pub(super) fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for home in by_length(&self.homes, |home| home.trim_end_matches('/')) {
            text = replace(&text, home, "~", |before, after| {
                // A home such as `/root` is also the end of other paths.
                let is_path = home.matches('/').count() > 1 || !before.is_some_and(is_of_name);
                is_path && !after.is_some_and(is_of_name)
            });
        }
        text = HOMES.iter().fold(text, |text, folder| hide_homes(&text, folder));
        for (names, mark) in [(&self.users, "<user>"), (&self.hosts, "<host>")] {
            let short = names.iter().map(|name| name.trim().split('.').next().unwrap_or_default().to_owned());
            let names: Vec<_> = names.iter().cloned().chain(short).collect();
            for name in by_length(&names, str::trim).filter(|name| !PUBLIC.contains(name)) {
                text = replace(&text, name, mark, |before, after| {
                    !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
                });
            }
        }
        text
    }
}

/// The name and the home of this process's user in the system's list of users.
fn account() -> Option<(String, String)> {
    let user = std::fs::metadata("/proc/self").ok()?.uid().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut accounts = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    accounts.find_map(|fields| match fields[..] {
        [name, _, id, _, _, home, ..] if id == user => Some((name.to_owned(), home.to_owned())),
        _ => None,
    })
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || "_-.".contains(character)
}

/// The names that are not empty, the longest first: one may be the beginning of another.
fn by_length(names: &[String], trim: fn(&str) -> &str) -> impl Iterator<Item = &str> {
    let mut names: Vec<_> = names.iter().map(|name| trim(name)).filter(|name| !name.is_empty()).collect();
    names.sort_unstable_by_key(|name| (std::cmp::Reverse(name.len()), *name));
    names.dedup();
    names.into_iter()
}

/// Replaces a name in any case where the characters around it allow it.
fn replace(
    text: &str,
    name: &str,
    mark: &str,
    allowed: impl Fn(Option<char>, Option<char>) -> bool,
) -> String {
    let (lower, name) = (text.to_ascii_lowercase(), name.to_ascii_lowercase());
    let (mut hidden, mut copied) = (String::new(), 0);
    for (at, _) in lower.match_indices(&name) {
        let end = at + name.len();
        if allowed(text[..at].chars().next_back(), text[end..].chars().next()) {
            hidden.push_str(&text[copied..at]);
            hidden.push_str(mark);
            copied = end;
        }
    }
    hidden + &text[copied..]
}

/// Replaces the homes of all users below a folder.
fn hide_homes(text: &str, folder: &str) -> String {
    let mut parts = text.split(folder);
    let mut hidden = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let name = part.find(|c: char| !is_of_name(c)).unwrap_or(part.len());
        hidden.push_str(if name == 0 { folder } else { "~" });
        hidden.push_str(&part[name..]);
    }
    hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    fn private(homes: &[&str], users: &[&str], hosts: &[&str]) -> Private {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Private { homes: owned(homes), users: owned(users), hosts: owned(hosts) }
    }

    #[test]
    fn names_are_hidden_wherever_they_stand() {
        let private =
            private(&["/data/anna/", "/vault", "/"], &["Anna", "root", ""], &["lab7.example.org\n"]);
        for (text, hidden) in [
            ("-I/data/anna/sdk", "-I~/sdk"),
            ("\"/data/anna\"", "\"~\""),
            ("/data/annabel", "/data/annabel"),
            ("/tmp/anna_sdk of ANNA", "/tmp/<user>_sdk of <user>"),
            ("/home/bob.b/sdk:/home/eve", "~/sdk:~"),
            ("/nfs/home/bob", "/nfs~"),
            ("ls /home/ and /", "ls /home/ and /"),
            ("/vault/sdk in /data/vault, root", "~/sdk in /data/vault, root"),
            ("lab7 LAB7.example.org lab77", "<host> <host> lab77"),
        ] {
            assert_eq!(private.hide(text), hidden);
        }
    }

    #[test]
    fn the_names_of_this_process_are_known() {
        let private = Private::of_process();
        assert!(!private.hosts.is_empty());
        for (variable, names) in [("HOME", &private.homes), ("USER", &private.users)] {
            assert!(std::env::var(variable).map_or(true, |name| names.contains(&name)), "{variable}");
        }
    }
}
