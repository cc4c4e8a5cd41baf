package launcher

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/levels"
)

// Vars reads variables and collects complaints about them.
type Vars struct {
	get  func(string) string
	errs []error
}

// NewVars returns variables as getenv tells them. An empty variable counts as missing.
func NewVars(getenv func(string) string) *Vars { return &Vars{get: getenv} }

// Get returns the value of a variable.
func (v *Vars) Get(name string) string { return v.get(name) }

// Add adds a complaint.
func (v *Vars) Add(format string, args ...any) { v.errs = append(v.errs, fmt.Errorf(format, args...)) }

// Err returns all complaints, one a line, or nil.
func (v *Vars) Err() error { return errors.Join(v.errs...) }

// Any reports whether one of the variables is there.
func (v *Vars) Any(names ...string) bool { return v.first(names...) != "" }

// All reports whether all of the variables are there.
func (v *Vars) All(names ...string) bool {
	for _, name := range names {
		if v.get(name) == "" {
			return false
		}
	}
	return true
}

// first returns the first of the names in the environment; empty: none.
func (v *Vars) first(names ...string) string {
	for _, name := range names {
		if v.get(name) != "" {
			return name
		}
	}
	return ""
}

// Number reads a variable in low..high; ok is false after a complaint.
func (v *Vars) Number(name string, low, high int) (n int, ok bool) {
	text := v.get(name)
	if text == "" {
		v.Add("%s is missing; allowed are %d to %d", name, low, high)
		return 0, false
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		v.Add("%s=%q; allowed are %d to %d", name, text, low, high)
		return 0, false
	}
	return n, true
}

// List returns the items of a variable between commas.
func (v *Vars) List(name string) []string {
	var items []string
	for _, item := range strings.Split(v.get(name), ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// Addresses returns the IP addresses of a variable, between commas.
func (v *Vars) Addresses(name string) (all []netip.Addr) {
	for _, item := range v.List(name) {
		a, err := netip.ParseAddr(item)
		if err != nil || !IsAddressable(a) {
			v.Add("%s: %q; allowed are IP addresses that other hosts may dial, such as 203.0.113.7", name, item)
			continue
		}
		all = append(all, a)
	}
	return all
}

// IsAddressable reports whether a may mean the same host to all ranks.
func IsAddressable(a netip.Addr) bool {
	return a.IsValid() && a.Zone() == "" && !a.Is4In6() && !a.IsUnspecified() && !a.IsMulticast()
}

// place reads a rank and a size.
func (v *Vars) place(rank, size string) (levels.Rank, int) {
	n, ok := v.Number(size, 1, levels.MaxRanks)
	last := n - 1
	if !ok {
		last = levels.MaxRanks - 1
	}
	r, _ := v.Number(rank, 0, last)
	return levels.Rank(r), n
}
