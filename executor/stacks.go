package executor

import (
	"bytes"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// stack is a goroutine of this process as a traceback shows it.
type stack struct {
	id     uint64
	state  string  // computing, or its wait in Go's words: sleep, IO wait
	frames []frame // the innermost first
}

// frame is a function with its current file and line.
type frame struct{ function, file, line string }

// stackReader reads the goroutines, rarely.
type stackReader struct {
	mu   sync.Mutex
	last []stack
	when time.Time
}

// stackLife is how long stacks count as new: several ranks ask at once.
const stackLife = 50 * time.Millisecond

// read returns the goroutines of this process, at most stackLife old.
func (r *stackReader) read() []stack {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil || time.Since(r.when) > stackLife {
		r.last, r.when = readStacks(), time.Now()
	}
	return r.last
}

// maxStacks bounds the text of all goroutines, bytes.
const maxStacks = 16 << 20

// readStacks returns the goroutines of this process. It stops the program for about a
// microsecond each.
func readStacks() []stack {
	b := make([]byte, 64<<10)
	for n := runtime.Stack(b, true); ; n = runtime.Stack(b, true) {
		if n < len(b) || len(b) >= maxStacks {
			return parseStacks(b[:n])
		}
		b = make([]byte, 4*len(b))
	}
}

// parseStacks reads the text of runtime.Stack: for each goroutine a head, and two lines a function.
func parseStacks(b []byte) (all []stack) {
	for text := range bytes.SplitSeq(b, []byte("\n\n")) {
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		number, state, _ := strings.Cut(strings.TrimPrefix(lines[0], "goroutine "), " ")
		id, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			continue
		}
		s := stack{id: id, state: parseState(state)}
		for i := 1; i+1 < len(lines); i += 2 {
			if strings.HasPrefix(lines[i], "created by ") || strings.HasPrefix(lines[i], "...") {
				break
			}
			s.frames = append(s.frames, parseFrame(lines[i], lines[i+1]))
		}
		all = append(all, s)
	}
	return all
}

// parseState reads [IO wait, 2 minutes]: of the end of a goroutine's head.
func parseState(text string) string {
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "["), "]")
	text, _, _ = strings.Cut(text, ",")
	if text == "running" || text == "runnable" {
		return "computing"
	}
	return text
}

// parseFrame reads the two lines of a function: main.load(0x1) and its /dir/load.go:88 +0x1d.
func parseFrame(call, place string) frame {
	f := frame{function: call}
	if at := strings.LastIndexByte(call, '('); at > 0 {
		f.function = call[:at]
	}
	place, _, _ = strings.Cut(strings.TrimSpace(place), " +0x")
	if at := strings.LastIndexByte(place, ':'); at > 0 {
		f.file, f.line = place[:at], place[at+1:]
	}
	return f
}

// goRoot begins the names of the standard library's files.
var goRoot = func() string {
	at := reflect.ValueOf(strings.Cut).Pointer()
	file, _ := runtime.FuncForPC(at).FileLine(at)
	return strings.TrimSuffix(file, "strings/strings.go")
}()

// ours are the packages between a program and its ranks' engines.
var ours = func() (list []string) {
	const name = "/executor"
	module := strings.TrimSuffix(reflect.TypeFor[stack]().PkgPath(), name)
	for _, p := range []string{"planner", "executor", "levels", "submodules", "tasks", "dag"} {
		list = append(list, module+"/"+p)
	}
	return list
}()

// isOurs reports whether the function belongs to this module's library.
func (f *frame) isOurs() bool {
	for _, p := range ours {
		if rest, ok := strings.CutPrefix(f.function, p); ok && (rest[0] == '.' || rest[0] == '/') && !strings.HasSuffix(f.file, "_test.go") {
			return true
		}
	}
	return false
}

// isStandard reports whether the function belongs to the standard library, or to golang.org/x:
// engines sleep there.
func (f *frame) isStandard() bool {
	if strings.HasPrefix(f.function, "golang.org/x/") {
		return true
	}
	if goRoot != "" {
		return strings.HasPrefix(f.file, goRoot)
	}
	first, _, _ := strings.Cut(f.file, "/") // the build has cut off the path to the files
	return !strings.Contains(first, ".") && !strings.HasPrefix(f.function, "main.")
}

// String names the function, without the path of its package, and the place.
func (f *frame) String() string {
	return fmt.Sprintf("%s %s:%s", path.Base(f.function), path.Base(f.file), f.line)
}

// standsAt says where the program stands in a goroutine: the innermost function of its own, and its
// state there. called reports whether this function has called the library.
func (s *stack) standsAt() (at string, called bool) {
	for i := range s.frames {
		f := &s.frames[i]
		switch {
		case f.isOurs():
			called = true
		case f.isStandard():
		case called:
			return f.String(), true
		default:
			return f.String() + " (" + s.state + ")", false
		}
	}
	return "", called
}

// findProgram says where the program of a rank stands. caller is the goroutine last seen in a call
// of the rank; 0: none was. If it has ended, any goroutine in a call serves, or else the main one,
// in a process of one rank only.
func findProgram(all []stack, caller uint64, alone bool) string {
	best := ""
	for i := range all {
		s := &all[i]
		at, called := s.standsAt()
		switch {
		case at == "":
		case s.id == caller:
			return at
		case !alone:
		case called, s.id == mainGoroutine && best == "":
			best = at
		}
	}
	return best
}

// Of the goroutines of a program printProgram writes so many at most, with so many functions each.
const (
	mostGoroutines = 32
	mostFunctions  = 16
)

// printProgram writes a line for each goroutine that is in functions of the program, with these, the innermost first.
func printProgram(b *bytes.Buffer, all []stack) {
	n := 0
	for i := range all {
		var at []string
		for k := range all[i].frames {
			if f := &all[i].frames[k]; !f.isOurs() && !f.isStandard() {
				at = append(at, f.String())
			}
		}
		if len(at) == 0 {
			continue
		}
		if n++; n > mostGoroutines {
			continue
		}
		if more := len(at) - mostFunctions; more > 0 {
			at = append(at[:mostFunctions], fmt.Sprintf("%d more", more))
		}
		fmt.Fprintf(b, "goroutine %d (%s): %s\n", all[i].id, all[i].state, strings.Join(at, ", in "))
	}
	if n > mostGoroutines {
		fmt.Fprintf(b, "%d more goroutines of the program\n", n-mostGoroutines)
	}
}

// otherCaller says where the program stands in a call, for a text, if just one other goroutine is in one.
func otherCaller() string {
	own, at := goroutineID(), ""
	for _, s := range readStacks() {
		place, called := s.standsAt()
		if !called || place == "" || s.id == own {
			continue
		}
		if at != "" {
			return ""
		}
		at = " of " + place
	}
	return at
}

// mainGoroutine is the number of the goroutine of function main.
const mainGoroutine = 1

// goroutineID returns the number of this goroutine.
func goroutineID() uint64 {
	var head [64]byte
	n := runtime.Stack(head[:], false) // goroutine 17 [running]: …
	number, _, _ := bytes.Cut(bytes.TrimPrefix(head[:n], []byte("goroutine ")), []byte(" "))
	id, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil {
		return 0
	}
	return id
}
