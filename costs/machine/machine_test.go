package machine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
)

// least is a file with nothing that can be left out.
const least = `{"version": 1, "provenance": {"method": "assumed"},
"links": [{"level": "s", "latency_ns": 100}],
"copy_byte_ns": 0.1, "reduce_byte_ns": 0.2`

func TestParseRefuses(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"syntax", "{\n\"links\": [}", "m.json:2: invalid character '}'"},
		{"array", "\n[]", "m.json:2: a machine must be an object"},
		{"missing", `{"version": 1}`, `m.json:1: key "links" is missing`},
		{"unknown", least + ",\n\"colour\": 1}", `m.json:4: unknown key "colour" in a machine`},
		{"type", least + ",\n\"step_ns\": \"much\"}", "m.json:4: step_ns is a string"},
		{"version", strings.Replace(least, `{"version": 1`, "{\n\"version\": 2", 1) + "}", "m.json:2: version 2; this program reads version 1"},
		{"negative", least + ",\n\"step_ns\": -1}", "m.json:1: a machine: step_ns: -1; allowed are 0 to 1e+09"},
		{"cores", least + ",\n\"cores\": {\"per_nodes\": 1}}", `m.json:4: cores: unknown key "per_nodes"`},
		{"both cores", least + ",\n\"cores\": {\"per_node\": 1, \"in_all\": 2}}", "m.json:1: a machine: cores: 1 per_node and 2 in_all"},
		{"link key", withLink(`{"level": "i", "speed": 1}`), `m.json:3: a link: unknown key "speed"`},
		{"no level", withLink(`{"latency_ns": 1}`), `m.json:3: a link: key "level" is missing`},
		{"bad level", withLink(`{"level": "net"}`), `m.json:3: level "net"; allowed is one letter a to z`},
		{"twice", withLink(`{"level": "s"}`), "m.json:3: link s is given twice"},
		{"too much", withLink(`{"level": "i", "latency_ns": 1e10}`), "m.json:3: link i: latency_ns: 1e+10"},
		{"packets", withLink(`{"level": "i", "packet_extra_bytes": 66}`), "m.json:3: link i: packet_extra_bytes without packet_bytes"},
	} {
		_, err := machine.Parse("m.json", []byte(test.text))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v\nwant %s", test.name, err, test.want)
		}
	}
	if _, err := machine.Parse("m.json", []byte(least+"}")); err != nil {
		t.Error(err)
	}
}

// withLink returns the least file with one more link, on line 3.
func withLink(link string) string {
	return strings.Replace(least, "100}]", "100},\n"+link+"]", 1) + "}"
}

func TestFormatReadsBack(t *testing.T) {
	all := machine.Assumed()
	all.Cores = machine.Cores{InAll: 4, Switch: 1500}
	all.Unreadable, all.EagerMax, all.Budget, all.Noise = true, -1, 1<<20, 0.1
	all.TLS, all.SealByte, all.OpenByte = true, 0.2, 0.25
	all.Links[1].Gap = 100
	for _, m := range []*machine.Machine{machine.Assumed(), all} {
		data, err := m.Format()
		if err != nil {
			t.Fatal(err)
		}
		got, err := machine.Parse("m.json", data)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(m, got); d != "" {
			t.Errorf("-written +read:\n%s", d)
		}
	}
	all.Links[0].Latency = -1
	if _, err := all.Format(); err == nil {
		t.Error("a negative latency was written")
	}
}

func TestLinkOfALevel(t *testing.T) {
	m := machine.Assumed()
	for _, test := range []struct{ level, want byte }{{'s', 's'}, {'i', 'i'}, {'w', 'w'}, {'m', 's'}} {
		got, err := m.Link(levels.Level{Name: "x", Symbol: test.level})
		if err != nil || byte(got.Level) != test.want {
			t.Errorf("level %c: link %c, %v; want %c", test.level, got.Level, err, test.want)
		}
	}
	_, err := m.Link(levels.Level{Name: "rack", Symbol: 'k'})
	if err == nil || !strings.Contains(err.Error(), "no link for level k/rack; there are links for s i w") {
		t.Error(err)
	}
}

// Sealing takes of the processors on links between nodes, once.
func TestSealed(t *testing.T) {
	between := func(s machine.Symbol) bool { return s != 's' }
	m := machine.Assumed()
	if _, known := m.Sealed(between); known {
		t.Error("what sealing takes is known of a machine that doesn't say it")
	}
	m.SealByte, m.OpenByte = 0.25, 0.5
	sealed, known := m.Sealed(between)
	if !known || !sealed.TLS || m.TLS {
		t.Errorf("known %t, %+v", known, sealed)
	}
	for i, l := range m.Links {
		if between(l.Level) {
			l.SendByte += 0.25
			l.RecvByte += 0.5
		}
		if sealed.Links[i] != l {
			t.Errorf("link %c: %+v, want %+v", l.Level, sealed.Links[i], l)
		}
	}
	if again, known := sealed.Sealed(between); again != sealed || !known {
		t.Error("sealed twice")
	}
}
