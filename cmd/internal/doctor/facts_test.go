package doctor

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels/join"
)

// An address says in which order it is offered, or why it is not.
func TestUse(t *testing.T) {
	offered := []string{"10.0.0.1", "127.0.0.1"}
	for _, test := range []struct {
		ip      string
		flags   net.Flags
		offered []string
		how     join.Offer
		filters []string
		want    string
	}{
		{"10.0.0.1", net.FlagUp, offered, 0, nil, "offered as 1st"},
		{"127.0.0.1", net.FlagUp, offered, 0, nil, "offered as 2nd, for ranks of this host"},
		{"10.0.0.2", 0, offered, 0, nil, "not offered: the interface is down"},
		{"fe80::1", net.FlagUp, offered, 0, nil, "not offered: link-local"},
		{"10.0.0.2", net.FlagUp, nil, 0, nil, ""},
		{"10.0.0.2", net.FlagUp, offered, 0, []string{"ib0", "ib1"}, "not offered: TIERFLOW_INTERFACES=ib0,ib1"},
		{"10.0.0.2", net.FlagUp, offered, 0, nil, "not offered"},
		{"10.0.0.2", net.FlagUp, []string{"127.0.0.1", "::1"}, 0, nil, "not offered: all ranks are on this host"},
		{"10.0.0.2", net.FlagUp, offered, join.Advertised, []string{"ib0"}, "not offered: TIERFLOW_ADVERTISE has others"},
	} {
		if got := use(net.ParseIP(test.ip), test.flags, test.offered, test.how, test.filters); got != test.want {
			t.Errorf("%s of %v: %q, want %q", test.ip, test.offered, got, test.want)
		}
	}
}

// This host's addresses come in the order in which they are offered, the others behind them.
func TestAddressesAreSorted(t *testing.T) {
	var all []string
	for _, a := range addresses(nil, 0, nil) {
		all = append(all, a.Address)
	}
	if len(all) == 0 {
		t.Skip("this host has no addresses")
	}
	slices.Reverse(all)
	var got []string
	for _, a := range addresses(all[:len(all)/2+1], 0, nil) {
		if strings.HasPrefix(a.Use, "offered as ") {
			got = append(got, a.Address)
		} else if len(got) <= len(all)/2 {
			t.Errorf("%s comes before one that is offered: %q", a.Address, all)
		}
	}
	if told := addresses([]string{"203.0.113.7"}, join.Advertised, nil); told[0] != (address{"203.0.113.7", "advertised", "offered as 1st"}) {
		t.Errorf("an address that no interface has: %v", told)
	}
	if !slices.Equal(slices.Compact(got), slices.Compact(all[:len(all)/2+1])) {
		t.Errorf("offered are %q, in the order %q", all[:len(all)/2+1], got)
	}
}
