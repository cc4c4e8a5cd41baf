//go:build !linux

package tcp

import "fmt"

// UsableCongestion complains of any TCP congestion control: to choose one needs Linux.
func UsableCongestion(name string) error {
	if name == "" {
		return nil
	}
	return fmt.Errorf("TCP congestion control %q: to choose one needs Linux", name)
}
