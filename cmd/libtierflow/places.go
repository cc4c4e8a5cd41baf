//go:build cgo

package main

import (
	"bufio"
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// places finds functions and lines of C code by address.
type places struct {
	mu  sync.Mutex
	all map[uintptr]*lookup
}

// lookup is a place that is being looked up: symbols of large programs take a while.
type lookup struct {
	ended chan struct{} // closed at the end
	rough string        // what there is at once: prog+0x11c2
	text  string        // step prog.c:12, or step prog; valid at the end
}

// lookupTime is the longest wait for a place.
const lookupTime = 300 * time.Millisecond

// of returns the place of a call by its return address; empty: unknown.
func (p *places) of(address uintptr) string {
	if address == 0 {
		return ""
	}
	p.mu.Lock()
	one := p.all[address]
	if one == nil {
		if p.all == nil {
			p.all = map[uintptr]*lookup{}
		}
		one = &lookup{ended: make(chan struct{})}
		p.all[address] = one
		maps, _ := os.ReadFile("/proc/self/maps") // unknown without it
		file, offset := findMapping(maps, address-1)
		if file != "" {
			one.rough = fmt.Sprintf("%s+%#x", filepath.Base(file), offset)
		}
		go func() { // it ends by itself
			one.text = one.rough
			if text := placeIn(file, offset); text != "" {
				one.text = text
			}
			close(one.ended)
		}()
	}
	p.mu.Unlock()
	timer := time.NewTimer(lookupTime)
	defer timer.Stop()
	select {
	case <-one.ended:
		return one.text
	case <-timer.C:
		return one.rough
	}
}

// findMapping returns the file that is mapped at an address, by the text of /proc/self/maps, and the place in it; empty:
// there is none.
func findMapping(maps []byte, address uintptr) (file string, offset uint64) {
	for lines := bufio.NewScanner(bytes.NewReader(maps)); lines.Scan(); {
		var low, high, at uint64
		var mode, device string
		var inode uint64
		line := lines.Text()
		n, _ := fmt.Sscanf(line, "%x-%x %s %x %s %d", &low, &high, &mode, &at, &device, &inode)
		if slash := strings.IndexByte(line, '/'); n == 6 && slash > 0 && low <= uint64(address) && uint64(address) < high {
			return line[slash:], at + uint64(address) - low
		}
	}
	return "", 0
}

// placeIn returns the function, and the line if it is known, of code at a place in a file; empty: unknown.
func placeIn(file string, offset uint64) string {
	f, err := elf.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	address := uint64(0)
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Off <= offset && offset < p.Off+p.Filesz {
			address = offset - p.Off + p.Vaddr
		}
	}
	name := functionAt(f, address)
	if name == "" {
		return ""
	}
	if line := lineAt(f, address); line != "" {
		return name + " " + line
	}
	return name + " " + filepath.Base(file)
}

// functionAt returns the function at an address of a file; empty: unknown.
func functionAt(f *elf.File, address uint64) string {
	all, _ := f.Symbols() // none in stripped files
	more, _ := f.DynamicSymbols()
	for _, s := range append(all, more...) {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value <= address && address < s.Value+s.Size {
			return s.Name
		}
	}
	return ""
}

// lineAt returns file and line of an address by debug information; empty: there is none.
func lineAt(f *elf.File, address uint64) string {
	d, err := f.DWARF()
	if err != nil {
		return ""
	}
	unit, err := d.Reader().SeekPC(address)
	if err != nil {
		return ""
	}
	lines, err := d.LineReader(unit)
	if err != nil || lines == nil {
		return ""
	}
	var at dwarf.LineEntry
	if lines.SeekPC(address, &at) != nil || at.File == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d", filepath.Base(at.File.Name), at.Line)
}
