//! `cargo xtask lint`: Markdown has one sentence per line, links that lead somewhere, and an index of the examples.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use crate::process::{Failure, Outcome};
use crate::workspace::Workspace;

/// The page that links to every example, and to every spec in `kernels`.
const EXAMPLES: &str = "docs/examples.md";
/// Words whose dot ends no sentence.
const ABBREVIATIONS: &[&str] = &["e.g.", "i.e.", "etc.", "vs.", "cf."];

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let files = workspace.tracked_files()?;
    let mut found: Vec<String> = Vec::new();
    for name in files.iter().filter(|name| name.ends_with(".md")) {
        let page = workspace.root.join(name);
        // A listed file that does not exist was deleted without a commit yet.
        let Ok(text) = fs::read_to_string(&page) else { continue };
        let links = prose(&text).flat_map(|(_, line)| links(line));
        let dead = links.filter(|link| !leads_somewhere(&page, link));
        found.extend(dead.map(|link| format!("{name}: the link to {link} leads nowhere")));
        found.extend(problems(&text).into_iter().map(|(line, problem)| format!("{name}:{line}: {problem}")));
    }
    let index = fs::read_to_string(workspace.root.join(EXAMPLES))?;
    let missing = files.iter().filter(|name| is_example(name) && !index.contains(&format!("](../{name})")));
    found.extend(missing.map(|name| format!("{EXAMPLES}: add a line for {name}")));
    if found.is_empty() { Ok(()) } else { Err(Failure::new(format!("\n{}", found.join("\n")))) }
}

fn is_example(name: &str) -> bool {
    let is_spec = name.starts_with("kernels/") && name.ends_with(".toml");
    is_spec || name.contains("/examples/") && name.ends_with(".rs")
}

/// The numbered lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// Defects of the text of a page, with their lines.
fn problems(text: &str) -> Vec<(usize, String)> {
    let blanks = (1..).zip(text.lines()).filter(|(_, line)| line.trim_end() != *line);
    let mut found: Vec<_> = blanks.map(|(number, _)| (number, "blanks at the end".to_owned())).collect();
    let mut titles = HashSet::new();
    // The line before this one, if it does not end a sentence.
    let mut unfinished = None;
    for (number, line) in prose(text) {
        if heading(line).is_some_and(|title| !titles.insert(title)) {
            found.push((number, "a heading that the page has already".to_owned()));
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

fn leads_somewhere(page: &Path, link: &str) -> bool {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let file = if path.is_empty() { page.to_owned() } else { page.with_file_name(path) };
    let is_anchor = |title: &str| slug(title) == anchor;
    let has_anchor = |text: String| prose(&text).any(|(_, line)| heading(line).is_some_and(is_anchor));
    let is_file = file.exists() && (anchor.is_empty() || fs::read_to_string(file).is_ok_and(has_anchor));
    link.contains("://") || is_file
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
    fn a_line_has_one_sentence() {
        let good = "# A. B.\n\nOne, e.g. this (it has. two).\n**A label.** And `a. b` text …\n\n- An item\n- Two. \n| a. b |\n";
        assert_eq!(problems(good), [(7, "blanks at the end".to_owned())]);
        let lines = |text| problems(text).into_iter().map(|(line, _)| line).collect::<Vec<_>>();
        assert_eq!(
            lines("One. Two.\nA sentence\ngoes on.\n\n```\na. b\nc\n```\n1. An item\n   goes on.\n"),
            [1, 3, 10]
        );
        assert_eq!(lines("# A\n## B\n## A\n"), [3]);
    }

    #[test]
    fn a_link_leads_to_a_file_and_a_heading() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("docs")).unwrap();
        fs::write(folder.path().join("docs/a.md"), "# The `a`, b\n```\n# code\n```\n").unwrap();
        fs::write(folder.path().join("x"), "").unwrap();
        let leads = |link: &str| leads_somewhere(&folder.path().join("docs/a.md"), link);
        assert!(["a.md", "#the-a-b", "a.md#the-a-b", "../x", "https://x.org/#y"].into_iter().all(leads));
        assert!(!["b.md", "a.md#code", "../x#y", "x"].into_iter().any(leads));
        assert_eq!(links("[a](b) and [c](d#e)").collect::<Vec<_>>(), ["b", "d#e"]);
    }
}
