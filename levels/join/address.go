package join

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/tierflow/tierflow/levels/join/ports"
)

// filter is one item of an interface list.
type filter struct {
	exclude bool
	subnet  netip.Prefix // valid for a CIDR
	name    string       // else an interface name,
	prefix  bool         // or the beginning of one
}

// parseFilters reads an interface list: names (eth0), beginnings of names (eth*),
// subnets (10.0.0.0/8), each with ! in front to exclude. The error lists every
// item that is none of these.
func parseFilters(items []string) ([]filter, error) {
	var filters []filter
	var errs []error
	for _, item := range items {
		f, err := parseFilter(item)
		if err != nil {
			errs = append(errs, err)
		}
		filters = append(filters, f)
	}
	return filters, errors.Join(errs...)
}

func parseFilter(item string) (f filter, err error) {
	f.name, f.exclude = strings.CutPrefix(strings.TrimSpace(item), "!")
	if strings.Contains(f.name, "/") {
		if f.subnet, err = netip.ParsePrefix(f.name); err != nil {
			return f, fmt.Errorf("interface filter %q: not a subnet such as 10.0.0.0/8", item)
		}
		return f, nil
	}
	f.name, f.prefix = strings.CutSuffix(f.name, "*")
	if f.name == "" && !f.prefix || strings.ContainsAny(f.name, "*! ,") {
		return f, fmt.Errorf("interface filter %q; allowed are a name, name*, a subnet, and ! in front of these", item)
	}
	return f, nil
}

func (f *filter) matches(name string, a netip.Addr) bool {
	switch {
	case f.subnet.IsValid():
		return f.subnet.Contains(a)
	case f.prefix:
		return strings.HasPrefix(name, f.name)
	default:
		return name == f.name
	}
}

// admits says whether an address passes: no exclusion names it, and if there are
// inclusions one does.
func admits(filters []filter, name string, a netip.Addr) bool {
	included, chosen := true, false
	for i := range filters {
		f := &filters[i]
		hit := f.matches(name, a)
		if f.exclude && hit {
			return false
		}
		if !f.exclude {
			included = false
			chosen = chosen || hit
		}
	}
	return included || chosen
}

// preference is the place of an address in the order of the list: that of the first inclusion with it.
func preference(filters []filter, name string, a netip.Addr) int {
	return slices.IndexFunc(filters, func(f filter) bool { return !f.exclude && f.matches(name, a) })
}

// isOrdered reports whether a list says which of several interfaces come first.
func isOrdered(filters []filter) bool {
	inclusions := 0
	for _, f := range filters {
		if !f.exclude {
			inclusions++
		}
	}
	return inclusions > 1
}

const (
	maxAddresses  = 64 // of one rank
	maxAdvertised = 16 // given by its user
)

// ownAddresses returns this host's addresses that pass the filters, with their
// subnets, in the order to be tried: that of the list, if it has one; IPv4 first, link-local
// IPv4 and loopback last. IPv6 link-local addresses are left out: they mean nothing on a peer
// without its name of the interface. nics names the interface of each.
func ownAddresses(filters []filter) (own []netip.Prefix, nics map[netip.Addr]string, err error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, nil, fmt.Errorf("interfaces: %w", err)
	}
	nics = map[netip.Addr]string{}
	place := map[netip.Addr]int{}
	var passedOver []string
	for _, nic := range interfaces {
		if nic.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, err := nic.Addrs()
		if err != nil {
			continue // the interface has gone since
		}
		for _, addr := range addrs {
			p, ok := usable(addr)
			switch {
			case !ok:
			case admits(filters, nic.Name, p.Addr()):
				own = append(own, p)
				nics[p.Addr()], place[p.Addr()] = nic.Name, preference(filters, nic.Name, p.Addr())
			default:
				passedOver = append(passedOver, nic.Name+" "+p.Addr().String())
			}
		}
	}
	if len(own)+len(passedOver) == 0 {
		return nil, nil, errors.New("this host has no network interface that is up, with an address; give it one, such as by ip link set lo up")
	}
	if len(own) == 0 {
		return nil, nil, fmt.Errorf("no address passes the interface filters; this host has %s", strings.Join(passedOver, ", "))
	}
	slices.SortStableFunc(own, func(a, b netip.Prefix) int {
		return cmp.Or(place[a.Addr()]-place[b.Addr()], distance(a.Addr())-distance(b.Addr()))
	})
	return own[:min(len(own), maxAddresses)], nics, nil
}

func usable(addr net.Addr) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(addr.String())
	if err != nil {
		return p, false
	}
	return p, p.Addr().Is4() || !p.Addr().IsLinkLocalUnicast()
}

// distance orders kinds of addresses.
func distance(a netip.Addr) int {
	switch {
	case a.IsLoopback():
		return 3
	case a.IsLinkLocalUnicast():
		return 2
	case a.Is6():
		return 1
	}
	return 0
}

// openListeners listens for peers: on the wildcard address when any interface will
// do, else on each address of own: the others stay shut. All have one port. It returns
// the addresses to offer, and how they came about: the rank's user has told them, or own has, in its order.
func (c *Config) openListeners(own []netip.Prefix, filtered bool) (listeners []net.Listener, offered []netip.AddrPort, how Offer, err error) {
	within, err := ports.Parse(c.Ports)
	if err != nil {
		return nil, nil, 0, err
	}
	err = within.Try(c.meetingPorts(), func(port uint16) (err error) {
		listeners, offered, err = listenAll(own, filtered, port)
		return err
	})
	if err != nil {
		return nil, nil, 0, fmt.Errorf("listen for peers: %w", err)
	}
	filters, _ := parseFilters(c.Interfaces) // checked before
	switch {
	case len(c.Advertise) > 0 && !c.isLocal():
		return listeners, advertise(c.Advertise, offered), Advertised, nil
	case isOrdered(filters):
		return listeners, offered, Listed, nil
	}
	return listeners, offered, Found, nil
}

// advertise returns addresses in place of the offered ones, at their port. Loopback stays: it is for the
// ranks of this host, which may not be reached from inside at the addresses that it has outside.
func advertise(addrs []netip.Addr, offered []netip.AddrPort) (all []netip.AddrPort) {
	for _, a := range addrs {
		all = append(all, netip.AddrPortFrom(a, offered[0].Port()))
	}
	for _, o := range offered {
		if o.Addr().IsLoopback() && !slices.Contains(addrs, o.Addr()) {
			all = append(all, o)
		}
	}
	return all[:min(len(all), maxAddresses)]
}

// meetingPorts returns those at which rank 0 is going to listen: others keep off them.
func (c *Config) meetingPorts() (all []uint16) {
	for _, a := range c.Rendezvous {
		_, text, _ := net.SplitHostPort(a) // checked before
		port, _ := strconv.ParseUint(text, 10, 16)
		all = append(all, uint16(port))
	}
	return all
}

// listenAll listens on the wildcard address, or on each of own that it can listen on. Port 0 is any.
func listenAll(own []netip.Prefix, filtered bool, port uint16) (listeners []net.Listener, offered []netip.AddrPort, err error) {
	if !filtered {
		l, err := net.Listen("tcp", fmt.Sprint(":", port))
		if err != nil {
			return nil, nil, err
		}
		for _, p := range own {
			offered = append(offered, netip.AddrPortFrom(p.Addr(), portOf(l)))
		}
		return []net.Listener{l}, offered, nil
	}
	var errs []error
	for _, p := range own {
		l, err := net.Listen("tcp", netip.AddrPortFrom(p.Addr(), port).String())
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			closeListeners(listeners)
			return nil, nil, err
		case err != nil:
			errs = append(errs, err)
			continue
		}
		port = portOf(l)
		listeners = append(listeners, l)
		offered = append(offered, l.Addr().(*net.TCPAddr).AddrPort())
	}
	if len(listeners) == 0 {
		return nil, nil, errors.Join(errs...)
	}
	return listeners, offered, nil
}

func portOf(l net.Listener) uint16 { return uint16(l.Addr().(*net.TCPAddr).Port) }

func closeListeners(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

// candidates orders the addresses of a peer for dialling from own: loopback first on
// one host, then addresses in a subnet of ours, then the others; or as offered, if its user has said
// an order. skipped says why the rest is out of question. With filters route returns the address from which the system would
// dial.
func candidates(own []netip.Prefix, filtered, sameHost bool, how Offer, offered []netip.AddrPort, route func(netip.Addr) netip.Addr) (targets []target, skipped []error) {
	var tiers [3][]target
	for _, a := range offered {
		if a.Addr().IsLoopback() && !sameHost {
			continue
		}
		if err := hopeless(own, sameHost || how == Advertised, a.Addr()); err != nil {
			skipped = append(skipped, fmt.Errorf("%s: %w", a, err))
			continue
		}
		source, near := sourceFor(own, filtered, a.Addr(), route)
		tier, why := 2, "the system's routes"
		switch {
		case a.Addr().IsLoopback():
			tier, why = 0, "loopback of one host"
		case how == Advertised:
			why = "the address that it advertises"
		case near:
			tier, why = 1, "a subnet that both are in"
		case source.IsValid():
			why = "the system's routes, from an address that passes the filter"
		}
		if how != Found {
			tier = min(tier, 1)
		}
		tiers[tier] = append(tiers[tier], target{"tcp", a.String(), source, why})
	}
	return slices.Concat(tiers[:]...), skipped
}

// hopeless says why a needn't be tried, if so. ours: an address of this host may lead to the peer.
func hopeless(own []netip.Prefix, ours bool, a netip.Addr) error {
	if !ours && slices.ContainsFunc(own, func(p netip.Prefix) bool { return p.Addr() == a }) {
		return errors.New("is an address of this rank's own host too")
	}
	if !slices.ContainsFunc(own, func(p netip.Prefix) bool { return p.Addr().Is4() == a.Is4() }) {
		return fmt.Errorf("this rank has no %s address", family(a))
	}
	return nil
}

// sourceFor chooses the address to dial a from: ours in the same subnet (near);
// else, with filters, the system's choice if it is admitted, or the first admitted one;
// else the system's choice, as the zero address.
func sourceFor(own []netip.Prefix, filtered bool, a netip.Addr, route func(netip.Addr) netip.Addr) (source netip.Addr, near bool) {
	for _, p := range own {
		if p.Contains(a) {
			return p.Addr(), true
		}
		if filtered && !source.IsValid() && p.Addr().Is4() == a.Is4() && p.Addr().IsLoopback() == a.IsLoopback() {
			source = p.Addr()
		}
	}
	if !source.IsValid() {
		return source, false
	}
	if usual := route(a); slices.ContainsFunc(own, func(p netip.Prefix) bool { return p.Addr() == usual }) {
		return usual, false
	}
	return source, false
}

// systemSource returns the address from which the system dials a, by its routes. It sends nothing.
func systemSource(a netip.Addr) netip.Addr {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 9))) // any port
	if err != nil {
		return netip.Addr{}
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
}

func family(a netip.Addr) string {
	if a.Is4() {
		return "IPv4"
	}
	return "IPv6"
}
