package launch

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/levels/join/ports"
)

// meeting is where ranks meet rank 0.
type meeting struct {
	file *os.File // rank 0's listener, to inherit
	far  string   // its addresses for ranks on other hosts
	near string   // and for those on its own
}

// listenRendezvous opens rank 0's listener. advertised are the addresses that others are to dial in place of the
// interfaces' own. With loopback no rank is on another machine, and nothing outside can connect.
func listenRendezvous(within ports.Range, advertised []netip.Addr, loopback bool) (m meeting, err error) {
	l, err := listenTCP(within, loopback)
	if err != nil {
		return m, fmt.Errorf("rendezvous: %w", err)
	}
	defer l.Close() // the file is a duplicate
	at := l.Addr().(*net.TCPAddr)
	var others, own []string
	add := func(list []string, ip string) []string {
		return append(list, net.JoinHostPort(ip, strconv.Itoa(at.Port)))
	}
	if loopback {
		own = add(own, at.IP.String())
	} else {
		for _, a := range advertised {
			others = add(others, a.String())
		}
		ips, err := interfaceAddrs(at)
		if err != nil && len(others) == 0 {
			return m, fmt.Errorf("rendezvous: %w", err)
		}
		for _, ip := range ips {
			own = add(own, ip.String())
		}
	}
	m.near = strings.Join(append(own, others...), ",")
	if m.far = strings.Join(others, ","); m.far == "" {
		m.far = m.near
	}
	if m.file, err = l.File(); err != nil {
		return m, fmt.Errorf("rendezvous: %w", err)
	}
	return m, nil
}

// listenTCP listens on loopback, or on all interfaces, by IPv6 and IPv4 if the system has both.
func listenTCP(within ports.Range, loopback bool) (*net.TCPListener, error) {
	host := ""
	if loopback {
		host = "127.0.0.1"
	}
	l, err := within.Listen("tcp", host)
	if err != nil && loopback {
		if l6, err6 := within.Listen("tcp", "::1"); err6 == nil {
			l, err = l6, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

// interfaceAddrs returns this machine's addresses within reach of others, in the order
// of its interfaces.
func interfaceAddrs(at *net.TCPAddr) ([]net.IP, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var usable []net.IP
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagRunning == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && isReachable(n.IP, at) {
				usable = append(usable, n.IP)
			}
		}
	}
	if len(usable) == 0 {
		return nil, errors.New("no network interface that other hosts may reach is up")
	}
	return usable, nil
}

// isReachable reports whether ip means this machine to another one. Link-local IPv6 addresses
// don't: they need a zone, known only to the dialer. Nor does loopback on any interface.
func isReachable(ip net.IP, at *net.TCPAddr) bool {
	if ip.To4() != nil {
		return !ip.IsLoopback() && !ip.IsMulticast()
	}
	v6 := at.IP.To4() == nil
	return v6 && ip.IsGlobalUnicast() && !ip.IsLinkLocalUnicast()
}
