"""Inputs for the programs that are recorded: inputs.py KIND SIZE prints one that depends on these alone."""

import json
import random
import sys

R = random.Random(11)
SYLLABLES = "ka lo mi ter un es po ri dan vo sel gra".split()


def word():
    return "".join(R.choice(SYLLABLES) for _ in range(R.randrange(1, 5)))


def words(least, most):
    return " ".join(word() for _ in range(R.randrange(least, most)))


def text(n):
    for _ in range(n):
        print(words(3, 20))


def people(n):
    return [{"id": i, "name": words(2, 4), "tags": [word() for _ in range(R.randrange(6))], "score": R.random() * 100,
             "address": {"street": words(2, 5), "number": R.randrange(300)}, "note": words(0, 40)} for i in range(n)]


def json_(n):
    print(json.dumps(people(n)))


def xml(n):
    print('<?xml version="1.0"?>\n<people>')
    for one in people(n):
        tags = "".join(f"<tag>{tag}</tag>" for tag in one["tags"])
        print(f'<person id="{one["id"]}" score="{one["score"]:.2f}"><name>{one["name"]}</name>{tags}'
              f'<address number="{one["address"]["number"]}">{one["address"]["street"]}</address><note>{one["note"]}</note></person>')
    print("</people>")


def html(n):
    print("<!doctype html><html><head><title>A page</title><style>table{border:1px solid} .a{color:red} "
          "li:nth-child(odd){font-weight:bold} div.card{float:left;width:30%;padding:4px}</style></head><body>")
    for i in range(n):
        print(f'<h2 id="s{i}" class="{R.choice("abc")}">{words(2, 6)}</h2><p>{words(20, 80)} <a href="#s{R.randrange(n)}">{word()}</a>'
              f' <em>{words(1, 4)}</em></p>')
        print("<ul>" + "".join(f"<li>{words(1, 9)}</li>" for _ in range(R.randrange(3, 12))) + "</ul>")
        print("<table>" + "".join("<tr>" + "".join(f"<td>{words(1, 4)}</td>" for _ in range(5)) + "</tr>"
                                  for _ in range(R.randrange(2, 12))) + "</table>")
        print("".join(f'<div class="card"><span>{words(1, 5)}</span><b>{word()}</b></div>' for _ in range(3)))
    print("</body></html>")


def csv(n):
    print("id,name,city,amount,share")
    for i in range(n):
        print(f"{i},{words(2, 3)},{word()},{R.randrange(10 ** 6)},{R.random():.4f}")


def cpp(n):
    print("#include <algorithm>\n#include <iostream>\n#include <map>\n#include <memory>\n#include <regex>\n"
          "#include <set>\n#include <sstream>\n#include <string>\n#include <unordered_map>\n#include <vector>")
    for i in range(n):
        print(f"""namespace n{i} {{
template <class T, int N> struct grid {{ T cells[N]; T& at(int i) {{ return cells[i % N]; }} }};
struct shape {{ virtual ~shape() {{}} virtual double area() const = 0; std::string name; }};
struct box : shape {{ double a = {R.randrange(9)}, b = {R.randrange(9)}; double area() const override {{ return a * b; }} }};
std::map<std::string, std::vector<std::shared_ptr<shape>>> index(std::istream& in) {{
  std::map<std::string, std::vector<std::shared_ptr<shape>>> all;
  for (std::string line; std::getline(in, line);) {{
    auto one = std::make_shared<box>();
    one->name = line.substr(0, {R.randrange(1, 9)});
    all[one->name].push_back(one);
  }}
  return all;
}}
double sum(const std::set<std::pair<int, std::string>>& s, grid<double, {R.randrange(2, 99)}>& g) {{
  double x = 0;
  for (auto& [k, v] : s) {{ x += k * g.at(k) + v.size(); switch (k % 5) {{ case 0: x *= 2; break; case 3: x -= k; }} }}
  std::vector<double> v(s.size(), x);
  std::sort(v.begin(), v.end(), [](double a, double b) {{ return a > b; }});
  return v.empty() ? x : v.front();
}}
}}""")


def rust(n):
    print("use std::collections::{BTreeMap, HashMap, HashSet};\nuse std::fmt::Display;")
    for i in range(n):
        print(f"""pub mod m{i} {{
  use super::*;
  #[derive(Clone, Debug, PartialEq, Default)]
  pub struct Item {{ pub name: String, pub size: u{R.choice([16, 32, 64])}, pub parts: Vec<Option<Box<Item>>> }}
  pub trait Visit {{ fn visit<F: FnMut(&Item)>(&self, f: &mut F); }}
  impl Visit for Item {{
    fn visit<F: FnMut(&Item)>(&self, f: &mut F) {{ f(self); for p in self.parts.iter().flatten() {{ p.visit(f); }} }}
  }}
  pub fn index<T: Display>(all: &[T]) -> BTreeMap<String, Vec<usize>> {{
    let mut map = BTreeMap::new();
    for (i, x) in all.iter().enumerate() {{ map.entry(format!("{{}}", x)).or_insert_with(Vec::new).push(i); }}
    map
  }}
  pub fn names(root: &Item) -> Result<HashMap<String, u64>, String> {{
    let mut seen = HashSet::new();
    let mut counts = HashMap::new();
    root.visit(&mut |item: &Item| {{ seen.insert(item.name.clone()); *counts.entry(item.name.clone()).or_insert(0) += item.size as u64; }});
    if seen.len() > {R.randrange(10, 999)} {{ return Err(format!("{{}} names", seen.len())); }}
    println!("{{:?}} {{}}", index(&counts.values().collect::<Vec<_>>()), {R.randrange(99)});
    Ok(counts)
  }}
}}""")


REDIS = (
    lambda key: ["SET", f"k{key}", words(1, 60)],
    lambda key: ["SET", f"k{key}", words(1, 6)],
    lambda key: ["GET", f"k{key}"],
    lambda key: ["APPEND", f"k{key}", word()],
    lambda key: ["DEL", f"k{key}"],
    lambda key: ["RPUSH", f"l{key % 500}", words(1, 9)],
    lambda key: ["LPOP", f"l{key % 500}"],
    lambda key: ["HSET", f"h{key % 900}", word(), words(1, 20)],
    lambda key: ["ZADD", f"z{key % 90}", str(key), words(1, 3)],
    lambda key: ["SADD", f"s{key % 300}", word()],
    lambda key: ["LRANGE", f"l{key % 500}", "0", "20"],
    lambda key: ["EXPIRE", f"k{key}", "1"],
)


def redis(n):
    for _ in range(n):
        key = R.randrange(20000)
        command = R.choice(REDIS)(key)
        sys.stdout.write(f"*{len(command)}\r\n" + "".join(f"${len(one)}\r\n{one}\r\n" for one in command))


def sql(n):
    print("PRAGMA journal_mode=MEMORY;\nCREATE TABLE book(id INTEGER PRIMARY KEY, title TEXT, year INT, text TEXT);\n"
          "CREATE INDEX by_year ON book(year, title);\nCREATE VIRTUAL TABLE words USING fts5(text);\nBEGIN;")
    for i in range(n):
        print(f"INSERT INTO book VALUES({i}, '{words(1, 5)}', {R.randrange(1900, 2020)}, '{words(5, 60)}');")
        print(f"INSERT INTO words VALUES('{words(5, 30)}');")
    print("COMMIT;")
    for i in range(n // 10):
        print(f"SELECT count(*), max(length(text)) FROM book WHERE year = {R.randrange(1900, 2020)} AND title > '{word()}';\n"
              f"UPDATE book SET text = text || ' {word()}' WHERE id = {R.randrange(n)};\n"
              f"SELECT rowid FROM words WHERE words MATCH '{word()}' LIMIT 5;")
    print("WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t WHERE x < 20000) SELECT sum(x) FROM t;\n"
          "SELECT year, group_concat(title, '; ') FROM book GROUP BY year ORDER BY count(*) DESC LIMIT 20;")


if __name__ == "__main__":
    {"json": json_}.get(sys.argv[1], globals().get(sys.argv[1]))(int(sys.argv[2]))
