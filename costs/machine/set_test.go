package machine_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
)

// A printed machine has a link for each level of the topology, every key, and is read as the same.
func TestFor(t *testing.T) {
	on, err := levels.ParseJSON("", []byte(`{"levels":[{"name":"numa","symbol":"m"},{"name":"node","symbol":"s"},{"name":"rack","symbol":"r"},{"name":"network","symbol":"i"}],
		"ranks":[["0","a","x"],["1","a","x"],["0","b","x"],["0","c","y"]]}`))
	if err != nil {
		t.Fatal(err)
	}
	m, err := machine.Assumed().For(on)
	if err != nil {
		t.Fatal(err)
	}
	data, err := m.FormatAll()
	if err != nil {
		t.Fatal(err)
	}
	read, err := machine.Parse("m.json", data)
	if err != nil || !reflect.DeepEqual(read, m) {
		t.Fatalf("%v: read %+v, want %+v", err, read, m)
	}
	var links strings.Builder
	for i, l := range m.Links {
		links.WriteByte(byte(l.Level))
		if assumed := machine.Assumed().Links; l.Latency != assumed[i/2].Latency {
			t.Errorf("link %c has latency %v", l.Level, l.Latency)
		}
	}
	if links.String() != "msri" {
		t.Errorf("links %s, want msri", &links)
	}
	var keys struct {
		Links []map[string]any `json:"links"`
		Cores map[string]any   `json:"cores"`
	}
	if err := json.Unmarshal(data, &keys); err != nil {
		t.Fatal(err)
	}
	if got, want := len(keys.Links[0]), reflect.TypeFor[machine.Link]().NumField(); got != want || len(keys.Cores) != 3 {
		t.Errorf("a link has %d keys of %d, cores has %d of 3", got, want, len(keys.Cores))
	}
	if _, err := (&machine.Machine{}).For(on); err == nil || !strings.Contains(err.Error(), "no link for level m/numa") {
		t.Errorf("a machine without links: %v", err)
	}
}

func TestSet(t *testing.T) {
	m, err := machine.Assumed().Set("i.byte_ns=0.8", "copy_byte_ns=0.2", "cores.per_node=4", "unreadable=true")
	if err != nil {
		t.Fatal(err)
	}
	if m.Links[1].Byte != 0.8 || m.Links[0].Byte != 0 || m.CopyByte != 0.2 || m.Cores.PerNode != 4 || !m.Unreadable {
		t.Errorf("%+v", m)
	}
	if want := "assumed with i.byte_ns=0.8, copy_byte_ns=0.2, cores.per_node=4, unreadable=true"; m.Provenance.Method != want {
		t.Errorf("method %q, want %q", m.Provenance.Method, want)
	}
	if same, err := machine.Assumed().Set(); err != nil || !reflect.DeepEqual(same, machine.Assumed()) {
		t.Errorf("nothing set: %+v, %v", same, err)
	}
	for word, want := range map[string]string{
		"i.byte=1":       `there is no key "byte"; known are buffer_bytes, burst_bytes, byte_ns,`,
		"r.byte_ns=1":    `there is no "r"; known are cores, i, s, w`,
		"links=1":        `there is no key "links"; known are budget_bytes, copy_byte_ns,`,
		"i.level=1":      `there is no key "level"`,
		"i.byte_ns":      "write a key and a number",
		"i.byte_ns=":     "write a key and a number",
		"i.byte_ns=fast": "write a key and a number",
		"i.byte_ns=-1":   "byte_ns: -1; allowed are 0 to 1e+09",
		`i.byte_ns="1"`:  "byte_ns",
	} {
		if _, err := machine.Assumed().Set(word); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", word, err, want)
		}
	}
}
