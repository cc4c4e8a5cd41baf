package join

import (
	"fmt"
	"os"
)

// Host identifies the operating system and network namespace of a rank.
// Ranks with equal hosts can reach each other over loopback and unix sockets.
type Host struct {
	Boot string // boot id of the kernel
	Name string // host name
	Net  string // network namespace, empty if the system has none
}

// thisHost asks the system. Without a boot id two hosts of one name would look
// the same: so its lack is an error.
func thisHost() (Host, error) {
	name, err := os.Hostname()
	if err != nil {
		return Host{}, fmt.Errorf("host identity: %w", err)
	}
	boot, net, err := kernelIdentity()
	if err != nil {
		return Host{}, fmt.Errorf("host identity: %w", err)
	}
	return Host{Boot: boot, Name: name, Net: net}, nil
}
