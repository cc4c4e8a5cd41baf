//go:build !linux

package doctor

import "runtime"

// readSystem leaves open the facts told by Linux alone.
func (f *facts) readSystem() {
	f.Files, f.FilesHard, f.Locked, f.AddressSpace, f.SharedFiles = unlimited, unlimited, unlimited, unlimited, unlimited
	f.CPUCount = runtime.NumCPU()
}
