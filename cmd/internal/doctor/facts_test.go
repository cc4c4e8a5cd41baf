package doctor

import (
	"net"
	"slices"
	"strings"
	"testing"
)

// An address says in which order it is offered, or why it is not.
func TestUse(t *testing.T) {
	offered := []string{"10.0.0.1", "127.0.0.1"}
	for _, test := range []struct {
		ip      string
		flags   net.Flags
		offered []string
		filters []string
		want    string
	}{
		{"10.0.0.1", net.FlagUp, offered, nil, "offered as 1st"},
		{"127.0.0.1", net.FlagUp, offered, nil, "offered as 2nd, for ranks of this host"},
		{"10.0.0.2", 0, offered, nil, "not offered: the interface is down"},
		{"fe80::1", net.FlagUp, offered, nil, "not offered: link-local"},
		{"10.0.0.2", net.FlagUp, nil, nil, ""},
		{"10.0.0.2", net.FlagUp, offered, []string{"ib0", "ib1"}, "not offered: TIERFLOW_INTERFACES=ib0,ib1"},
		{"10.0.0.2", net.FlagUp, offered, nil, "not offered"},
		{"10.0.0.2", net.FlagUp, []string{"127.0.0.1", "::1"}, nil, "not offered: all ranks are on this host"},
	} {
		if got := use(net.ParseIP(test.ip), test.flags, test.offered, test.filters); got != test.want {
			t.Errorf("%s of %v: %q, want %q", test.ip, test.offered, got, test.want)
		}
	}
}

// This host's addresses come in the order in which they are offered, the others behind them.
func TestAddressesAreSorted(t *testing.T) {
	var all []string
	for _, a := range addresses(nil, nil) {
		all = append(all, a.Address)
	}
	if len(all) == 0 {
		t.Skip("this host has no addresses")
	}
	slices.Reverse(all)
	var got []string
	for _, a := range addresses(all[:len(all)/2+1], nil) {
		if strings.HasPrefix(a.Use, "offered as ") {
			got = append(got, a.Address)
		} else if len(got) <= len(all)/2 {
			t.Errorf("%s comes before one that is offered: %q", a.Address, all)
		}
	}
	if !slices.Equal(slices.Compact(got), slices.Compact(all[:len(all)/2+1])) {
		t.Errorf("offered are %q, in the order %q", all[:len(all)/2+1], got)
	}
}
