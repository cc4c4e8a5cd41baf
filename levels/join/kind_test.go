package join

import (
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestHostKind(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	here := fstest.MapFS{
		"proc/cpuinfo":                   file("processor\t: 0\nmodel name\t: A CPU @ 2 GHz\n\nprocessor\t: 1\nmodel name\t: Another\n"),
		"sys/devices/system/cpu/online":  file("0-3,8\n"),
		"sys/class/net/eth1/speed":       file("25000\n"),
		"sys/class/net/bridge0/speed":    file("-1\n"),
		"sys/class/net/eth0/speed":       file("1000\n"),
		"sys/class/net/nonsense/speed":   file("fast\n"),
		"sys/class/net/lo/operstate":     file("unknown\n"),
		"sys/devices/system/cpu/present": file("0-63\n"),
	}
	arm := fstest.MapFS{
		"proc/cpuinfo":                  file("processor: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\nprocessor: 1\nCPU part\t: 0xd0d\n"),
		"sys/devices/system/cpu/online": file("0\n"),
	}
	unknown := fstest.MapFS{"sys/devices/system/cpu/online": file("0\n")}
	long := fstest.MapFS{"proc/cpuinfo": file("model name: " + strings.Repeat("x", 5000)), "sys/devices/system/cpu/online": file("0\n")}
	for _, test := range []struct {
		of         fstest.MapFS
		interfaces []string
		want       string
	}{
		{here, nil, "A CPU @ 2 GHz, 5 processors"},
		{here, []string{"lo", "bridge0", "nonsense", "eth1", "eth0"}, "A CPU @ 2 GHz, 5 processors, 25000 Mbit/s"},
		{arm, []string{"eth0"}, "0x41 0xd0c, 1 processors"},
		{unknown, nil, "host its-name, 1 processors"},
		{long, nil, strings.Repeat("x", 120) + ", 1 processors"},
	} {
		if got := hostKind(test.of, "its-name", test.interfaces); got != test.want || len(got) > maxKind {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
	if n := processors(fstest.MapFS{}); n != runtime.NumCPU() {
		t.Errorf("%d processors of a system that doesn't say, want %d", n, runtime.NumCPU())
	}
}

func TestInterfacesOf(t *testing.T) {
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(i net.Interface) bool { return i.Flags&net.FlagLoopback != 0 })
	loopback := netip.MustParsePrefix("127.0.0.1/8")
	_, nics, err := ownAddresses(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := interfacesOf([]netip.Prefix{netip.MustParsePrefix("203.0.113.9/24"), loopback, loopback}, nics); at >= 0 && !slices.Equal(got, []string{all[at].Name}) {
		t.Errorf("%q, want the loopback interface %q once", got, all[at].Name)
	}
}

// All ranks know the kinds of all hosts, each once.
func TestKinds(t *testing.T) {
	jobs := mustJoin(t, configs(t, 3))
	for _, j := range jobs {
		if got := j.Kinds(); len(got) != 1 || got[0] == "" || got[0] != jobs[0].Peers[2].Kind {
			t.Errorf("rank %d: %q, want the one of rank 2, %q", j.Rank, got, jobs[0].Peers[2].Kind)
		}
	}
}
