//! `cargo xtask lint`: Markdown has one sentence per line, links that lead somewhere, and an index of the examples.

use std::collections::BTreeMap;
use std::fs;

use crate::process::{Failure, Outcome};
use crate::workspace::Workspace;

/// The page that links to every example, and to every spec in `kernels`.
const EXAMPLES: &str = "docs/examples.md";
/// Words whose dot ends no sentence.
const ABBREVIATIONS: &[&str] = &["e.g.", "i.e.", "etc.", "vs.", "cf."];

/// Texts by name.
type Pages = BTreeMap<String, String>;

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let files = workspace.tracked_files()?;
    // A listed file that does not exist was deleted without a commit yet.
    let read = |name: &String| Some((name.clone(), fs::read_to_string(workspace.root.join(name)).ok()?));
    let pages: Pages = files.iter().filter(|name| name.ends_with(".md")).filter_map(read).collect();
    let mut found: Vec<String> = Vec::new();
    for (name, text) in &pages {
        let dead =
            |target: &&str| !leads_somewhere(name, target, &pages, |path| workspace.root.join(path).exists());
        let links = prose(text).flat_map(|(_, line)| links(line)).filter(dead);
        found.extend(links.map(|target| format!("{name}: the link to {target} leads nowhere")));
        found.extend(problems(text).into_iter().map(|(line, problem)| format!("{name}:{line}: {problem}")));
    }
    let index = pages.get(EXAMPLES).map_or("", String::as_str);
    let is_example = |name: &&String| {
        let is_spec = name.starts_with("kernels/") && name.ends_with(".toml");
        is_spec || name.contains("/examples/") && name.ends_with(".rs")
    };
    let missing = files.iter().filter(is_example).filter(|name| !index.contains(&format!("](../{name})")));
    found.extend(missing.map(|name| format!("{EXAMPLES}: add a line for {name}")));
    if found.is_empty() { Ok(()) } else { Err(Failure::new(format!("\n{}", found.join("\n")))) }
}

/// The numbered lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    numbered.filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// Defects of the text of a page, with their lines.
fn problems(text: &str) -> Vec<(usize, String)> {
    let blanks = text.lines().zip(1..).filter(|(line, _)| line.trim_end() != *line);
    let mut found: Vec<_> = blanks.map(|(_, number)| (number, "blanks at the end".to_owned())).collect();
    let mut titles = Vec::new();
    // The line before this one, if it does not end a sentence.
    let mut unfinished = None;
    for (number, line) in prose(text) {
        if let Some(title) = heading(line) {
            if titles.contains(&title) {
                found.push((number, format!("a second heading {title:?}")));
            }
            titles.push(title);
        }
        let (is_item, words) = words(line);
        if unfinished == Some(number - 1) && !is_item && !words.is_empty() {
            found.push((number, "a sentence goes on: one sentence per line".to_owned()));
        }
        if words.iter().rev().skip(1).any(|word| ends_sentence(word)) {
            found.push((number, "more than one sentence in a line".to_owned()));
        }
        unfinished = words.last().filter(|last| !ends_sentence(last)).map(|_| number);
    }
    found
}

fn heading(line: &str) -> Option<&str> {
    line.starts_with('#').then(|| line.trim_matches(['#', ' ']))
}

/// Whether a line begins an item of a list, and its words: none of a table, a heading or the like. What is in backticks or
/// brackets is one word.
fn words(line: &str) -> (bool, Vec<String>) {
    let line = line.trim_start();
    let (marker, rest) = line.split_once(' ').unwrap_or((line, ""));
    let is_number = marker.strip_suffix('.').is_some_and(|digits| digits.parse::<u16>().is_ok());
    let is_item = is_number || ["-", "*", "+"].contains(&marker);
    if line.starts_with(['|', '#', '<', '>']) {
        return (false, Vec::new());
    }
    let (mut in_code, mut depth) = (false, 0_usize);
    let joined = |character: char| {
        match character {
            '`' => in_code = !in_code,
            '(' | '[' if !in_code => depth += 1,
            ')' | ']' if !in_code => depth = depth.saturating_sub(1),
            ' ' if in_code || depth > 0 => return '_',
            _ => {}
        }
        character
    };
    let text: String = if is_item { rest } else { line }.chars().map(joined).collect();
    (is_item, text.split_whitespace().map(str::to_owned).collect())
}

fn ends_sentence(word: &str) -> bool {
    let bare = word.trim_end_matches([')', '"', '”', '*', '_']);
    let is_label = word.ends_with(".**");
    let is_abbreviation = ABBREVIATIONS.contains(&word.trim_start_matches(['(', '*', '"']));
    bare.ends_with(['.', '!', '?']) && !bare.ends_with("..") && !is_label && !is_abbreviation
}

/// The targets of the links in a line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

fn leads_somewhere(page: &str, target: &str, pages: &Pages, exists: impl Fn(&str) -> bool) -> bool {
    if target.contains("://") || target.starts_with("mailto:") {
        return true;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let mut parts: Vec<&str> = page.split('/').collect();
    if !path.is_empty() {
        parts.pop();
    }
    for part in path.split('/').filter(|part| !part.is_empty()) {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    let name = parts.join("/");
    let has_anchor =
        |text: &String| prose(text).filter_map(|(_, line)| heading(line)).any(|title| slug(title) == anchor);
    exists(&name) && (anchor.is_empty() || pages.get(&name).is_some_and(has_anchor))
}

/// The anchor of a heading.
fn slug(title: &str) -> String {
    let kept = title.chars().filter(|one| one.is_alphanumeric() || " -_".contains(*one));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tmp_tree() {
        check(&Workspace::read().unwrap()).map_err(|e| println!("{e}")).unwrap();
    }

    #[test]
    fn a_line_has_one_sentence() {
        let good = "# A. B.\n\nOne, e.g. this (it has. two).\n**A label.** And `a. b` text …\n\n- An item\n- Two. \n| a. b |\n";
        assert_eq!(problems(good), [(7, "blanks at the end".to_owned())]);
        let lines = |text| problems(text).into_iter().map(|(line, _)| line).collect::<Vec<_>>();
        assert_eq!(
            lines("One. Two.\nA sentence that\ngoes on.\n\n```\na. b\nc\n```\n1. An item\n   goes on.\n"),
            [1, 3, 10]
        );
        assert_eq!(lines("# A\n## B\n## A\n"), [3]);
    }

    #[test]
    fn a_link_leads_to_a_file_and_a_heading() {
        let pages = Pages::from([("docs/a.md".to_owned(), "# The `a`, b\n```\n# code\n```\n".to_owned())]);
        let leads = |target: &str| {
            leads_somewhere("docs/b.md", target, &pages, |path| ["docs/a.md", "x"].contains(&path))
        };
        assert!(["a.md", "a.md#the-a-b", "../x", "https://x.org/#y"].into_iter().all(leads));
        assert!(!["b.md", "a.md#code", "../x#y", "x"].into_iter().any(leads));
        assert_eq!(links("[a](b) and [c](d#e)").collect::<Vec<_>>(), ["b", "d#e"]);
    }
}
