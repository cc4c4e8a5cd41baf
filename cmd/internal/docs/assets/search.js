"use strict";

const most = 12; // sections shown

// find returns the sections with all words of a question, the best first.
function find(question) {
  const words = question.toLowerCase().split(/\s+/).filter(Boolean);
  const count = (text, word) => text.toLowerCase().split(word).length - 1;
  const all = [];
  for (const s of words.length ? sections : []) {
    let score = 0;
    for (const word of words) {
      const one = 20 * Math.min(1, count(s.head, word)) + 10 * Math.min(1, count(s.title, word)) + Math.min(5, count(s.text, word));
      if (one === 0) { score = 0; break; }
      score += one;
    }
    if (score > 0) all.push({ s, score });
  }
  return { words, hits: all.sort((a, b) => b.score - a.score).slice(0, most).map((x) => x.s) };
}

// excerpt is the text around the first word, with all words marked.
function excerpt(text, words) {
  const lower = text.toLowerCase();
  const places = words.map((w) => lower.indexOf(w)).filter((i) => i >= 0);
  let from = Math.max(0, Math.min(...places) - 60);
  if (!places.length) from = 0;
  if (from > 0) from = text.lastIndexOf(" ", from) + 1;
  let to = from + 180;
  if (to < text.length) to = text.lastIndexOf(" ", to);
  const part = (from > 0 ? "… " : "") + text.slice(from, to) + (to < text.length ? " …" : "");
  const line = document.createElement("p");
  let rest = part;
  while (rest) {
    const low = rest.toLowerCase();
    let at = -1, word = "";
    for (const w of words) {
      const i = low.indexOf(w);
      if (i >= 0 && (at < 0 || i < at)) { at = i; word = w; }
    }
    if (at < 0) break;
    const mark = document.createElement("mark");
    mark.textContent = rest.slice(at, at + word.length);
    line.append(rest.slice(0, at), mark);
    rest = rest.slice(at + word.length);
  }
  line.append(rest);
  return line;
}

function show(found, question) {
  const { words, hits } = find(question);
  found.replaceChildren();
  found.hidden = words.length === 0;
  if (words.length && !hits.length) found.textContent = "Nothing has all of these words.";
  for (const s of hits) {
    const link = document.createElement("a");
    link.href = s.page + (s.anchor ? "#" + s.anchor : "");
    const head = document.createElement("strong");
    head.textContent = s.head ? s.title + " › " + s.head : s.title;
    link.append(head, excerpt(s.text.startsWith(s.head) ? s.text.slice(s.head.length).replace(/^[\s.,]+/, "") : s.text, words));
    link.addEventListener("click", () => { found.hidden = true; });
    found.append(link);
  }
}

const input = document.getElementById("search");
const found = document.getElementById("found");
const menu = document.getElementById("menu");
document.documentElement.classList.add("scripted");
input.hidden = menu.hidden = false;
input.addEventListener("input", () => show(found, input.value));
input.addEventListener("keydown", (e) => {
  if (e.key === "Enter") found.querySelector("a")?.click();
  if (e.key === "ArrowDown") { found.querySelector("a")?.focus(); e.preventDefault(); }
});
found.addEventListener("keydown", (e) => {
  const next = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[e.key];
  if (next) { (document.activeElement[next] ?? input).focus(); e.preventDefault(); }
});
document.addEventListener("keydown", (e) => {
  if (e.key === "Escape") { input.value = ""; found.hidden = true; }
  if (e.key === "/" && document.activeElement !== input) { input.focus(); e.preventDefault(); }
});
menu.addEventListener("click", () => {
  const open = document.documentElement.classList.toggle("open");
  menu.setAttribute("aria-expanded", String(open));
});
const asked = new URLSearchParams(location.search).get("q"); // a link may ask
if (asked) { input.value = asked; show(found, asked); }
