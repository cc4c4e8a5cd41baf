//go:build !linux

package join

// systemDomain is unknown: this system binds no process to CPUs.
func systemDomain() (string, error) { return "", nil }
