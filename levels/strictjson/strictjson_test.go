package strictjson_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels/strictjson"
)

// machine is what the tests read.
type machine struct {
	Name  string
	Nodes []node
	Speed float64
	Given []string
}

type node struct {
	limits
	Name string `json:"name"`
	Size even   `json:"size"`
}

type limits struct {
	Limits map[string]int `json:"limits"`
}

// even is a value with an opinion of its own.
type even string

func (e *even) UnmarshalText(text []byte) error {
	if len(text)%2 != 0 {
		return fmt.Errorf("size %q is odd", text)
	}
	*e = even(text)
	return nil
}

func read(data string) (m machine, err error) {
	r, err := strictjson.NewReader("f", []byte(data))
	if err != nil {
		return m, err
	}
	m.Given = r.Object("a machine", []string{"name", "nodes", "speed"}, 2, func(key string) {
		switch key {
		case "name":
			m.Name = r.Text(`"name"`)
		case "nodes":
			r.Array(`"nodes"`, func() {
				var n node
				line := r.Line()
				if r.Decode(&n, "a node") && n.Name == "" {
					r.Complain(line, "a node: %w", errNameless)
				}
				m.Nodes = append(m.Nodes, n)
			})
		case "speed":
			r.Decode(&m.Speed, "the speed")
		}
	})
	return m, r.Err()
}

var errNameless = errors.New("it has no name")

func TestRead(t *testing.T) {
	m, err := read("{\"speed\": 3.5,\n\"nodes\": [{\"name\": \"a\", \"limits\": {\"x\": 1}}, {\"name\": \"b\", \"size\": \"12\"}],\n\"name\": \"m\\n\"}")
	if got := fmt.Sprint(m, err); got != "{m\n [{{map[x:1]} a } {{map[]} b 12}] 3.5 [name nodes speed]} <nil>" {
		t.Errorf("got %s", got)
	}
}

func TestComplaints(t *testing.T) {
	const head = "{\"name\": \"m\",\n\"nodes\": [\n"
	for _, test := range []struct{ data, want string }{
		{"", "f:1: unexpected end of JSON input"},
		{"{\n\n]", "f:3: invalid character ']' looking for beginning of object key string"},
		{"{}\n{}", "f:2: invalid character '{' after top-level value"},
		{"\n7", "f:2: a machine must be an object with the keys name, nodes, speed"},
		{"\n{}", "f:2: key \"name\" is missing; a machine needs name, nodes\nf:2: key \"nodes\" is missing; a machine needs name, nodes"},
		{"{\"name\": \"m\",\n\"name\":\n4, \"nodes\": {\"a\": [1]}}", "f:2: key \"name\" is given twice\nf:3: \"name\" must be a string\nf:3: \"nodes\" must be an array"},
		{"{\"nodes\": [],\n\"Name\": {\"a\": [1,\n2]},\n\"name\": null}", "f:2: unknown key \"Name\" in a machine; known are name, nodes, speed\nf:4: \"name\" must be a string"},
		{head + "{\"name\": \"a\",\n\"limit\": {}}, {},\n7]}", "f:4: a node: unknown key \"limit\"\nf:4: a node: it has no name\nf:5: a node is a number"},
		{head + "{\"name\":\n[]}, {\"limits\": {\"x\":\n\"1\"}}]}", "f:4: a node: \"name\" is an array\nf:5: a node: \"limits\" is a string"},
		{head + "\n{\n\"name\": \"a\", \"size\": \"1\"}], \"speed\": \"1\"}", "f:4: size \"1\" is odd\nf:5: the speed is a string"},
		{"{\"" + strings.Repeat("k", 99) + "\": 1, \"name\": \"m\", \"nodes\": []}", "f:1: unknown key \"" + strings.Repeat("k", 60) + "…\" in a machine; known are name, nodes, speed"},
	} {
		_, err := read(test.data)
		if got := fmt.Sprint(err); got != test.want {
			t.Errorf("%s\ngives %s\nwant %s", test.data, got, test.want)
		}
	}
	if _, err := read(head + "{}]}"); !errors.Is(err, errNameless) {
		t.Errorf("%v doesn't wrap its cause", err)
	}
}

func TestManyComplaints(t *testing.T) {
	_, err := read("{\"name\": \"m\", \"nodes\": [" + strings.Repeat("\n{},", 99) + "\n{}]}")
	lines := strings.Split(fmt.Sprint(err), "\n")
	if len(lines) != strictjson.MaxComplaints+1 || lines[9] != "f:11: a node: it has no name" || lines[10] != "and 90 more" {
		t.Errorf("a hundred faults give %d lines:\n%v", len(lines), err)
	}
	var c strictjson.Complaints
	if c.Err() != nil || c.Len() != 0 {
		t.Errorf("no complaints are %v, %d", c.Err(), c.Len())
	}
	for n := range 12 {
		c.Add("%d", n)
		if c.Len() != n+1 {
			t.Errorf("%d complaints after %d", c.Len(), n+1)
		}
	}
}

// Reading ends for all bytes, and each complaint has a line. No complaint means: all
// needed keys were given.
func FuzzReader(f *testing.F) {
	for _, s := range []string{
		"", "{}", "[", "{\"name\": \"m\", \"nodes\": []}", "{\"nodes\": [{\"size\": \"1\"}, null, 1e999],\n\"speed\": 1e999}",
		"{\"nodes\": {\"a\": [1]}, \"name\": {}, \"name\": 1}", "{\"\\ud800\":\n0}", "{\"nodes\": [{\"limits\": {\"x\": {}}}]}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data string) {
		m, err := read(data)
		if err == nil {
			if len(m.Given) < 2 || m.Given[0] != "name" || m.Given[1] != "nodes" {
				t.Fatalf("%q passes with the keys %q", data, m.Given)
			}
			return
		}
		lines := 1 + strings.Count(data, "\n")
		for _, complaint := range strings.Split(err.Error(), "\n") {
			var line int
			if n, _ := fmt.Sscanf(complaint, "f:%d: ", &line); n == 1 && (line < 1 || line > lines) {
				t.Fatalf("%q: line %d of %d: %s", data, line, lines, complaint)
			}
		}
		if !strings.HasPrefix(err.Error(), "f:") {
			t.Fatalf("%q: %v", data, err)
		}
	})
}
