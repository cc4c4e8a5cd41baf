package machine_test

import (
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
)

// What is read can be written, and is then read as the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(least + "}"))
	f.Add([]byte(`{"version":1,"provenance":{"method":"x"},"links":[],"copy_byte_ns":0,"reduce_byte_ns":0}`))
	data, err := machine.Assumed().Format()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := machine.Parse("m.json", data)
		if err != nil {
			return
		}
		written, err := m.Format()
		if err != nil {
			t.Fatalf("read but not written: %v", err)
		}
		again, err := machine.Parse("m.json", written)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := again.Format(); err != nil || string(second) != string(written) {
			t.Errorf("%s\nthen %s, %v", written, second, err)
		}
	})
}
