package machine_test

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
)

func TestParseLogGOPS(t *testing.T) {
	m, err := machine.ParseLogGOPS("L=2500,o=1500,g=1000,G=6,O=0.5,S=65535")
	if err != nil {
		t.Fatal(err)
	}
	want := machine.Link{Level: 'i', Latency: 2500, Send: 1500, Recv: 1500, Gap: 1000, Byte: 6, SendByte: 0.5, RecvByte: 0.5}
	if m.Links[0] != want || m.EagerMax != 65535 {
		t.Errorf("%+v", m)
	}
	data, err := m.Format()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := machine.Parse("machine", data); err != nil {
		t.Error(err)
	}
	if m, err = machine.ParseLogGOPS("L=1,o=1,g=1,G=0,S=0"); err != nil || m.EagerMax != -1 {
		t.Errorf("%+v, %v", m, err)
	}
	for _, test := range []struct{ text, want string }{
		{"", `parameter ""; known are L, o, g, G, O and S`},
		{"L=1,o=2,g=3", "parameter G is missing"},
		{"L=1,L=2", "L is given twice"},
		{"l=1", `parameter "l=1"; known are`},
		{"L=x", `parameter "L=x"; allowed are 0 to 1e+09`},
		{"L=-1", `allowed are 0 to`},
		{"L=NaN", `allowed are 0 to`},
	} {
		if _, err := machine.ParseLogGOPS(test.text); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %s", test.text, err, test.want)
		}
	}
}
