package door

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/levels/process"
)

// Info describes a rank.
type Info struct {
	Job         string // its folder's name, the same on all ranks; see [IsName]
	Rank, Ranks int
	PID         int
	Born        uint64    // when the process began, in the kernel's ticks; 0: unknown
	Space       string    // the name space of PID; empty: unknown
	Host        string    //
	Nodes       []string  // of all ranks, by rank
	Program     string    // the command line's first word, without folders
	Began       time.Time // when it entered the job, in its last change of ranks
	Since       time.Time `json:",omitzero"` // the job's own beginning, before all changes of its ranks; zero: Began
	Recording   string    // the file of its last events; empty: none

	dir string // of the file
}

// Question is a question to a rank. The zero value asks for its own state.
type Question struct {
	Ranks []int // ranks of the world to be asked for theirs
	All   bool  // all of them
	Usage bool  // how much it has done, in place of states
}

// Answer is a rank's answer.
type Answer struct {
	States []flight.State  `json:",omitempty"`
	Usage  json.RawMessage `json:",omitempty"` // planner's Usage
}

// Door is an open door of this process. All methods may be called concurrently.
type Door struct {
	info   Info
	listen net.Listener
	answer func(Question) Answer
	served sync.WaitGroup
	end    chan struct{} // closed by Close
	once   sync.Once
}

// patience bounds how long a client may take to ask and to read.
const patience = 10 * time.Second

// maxQuestion bounds a question, bytes.
const maxQuestion = 1 << 20

// maxInfo bounds a rank's file, bytes: it has the nodes of all ranks.
const maxInfo = 64 << 20

// Folder returns the folder of this user's jobs: setting, or for an empty one a folder in
// memory.
func Folder(setting string) string {
	if setting != "" {
		return setting
	}
	name := fmt.Sprintf("tierflow-%d", os.Getuid())
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err == nil && info.IsDir() {
		return filepath.Join(memory, name)
	}
	return filepath.Join(os.TempDir(), name)
}

// JobBegan is when the rank's job began.
func (i *Info) JobBegan() time.Time {
	if i.Since.IsZero() {
		return i.Began
	}
	return i.Since
}

// Dir is the folder of a rank's job in the folder of all jobs.
func (i *Info) Dir(root string) string { return filepath.Join(root, i.Job) }

// file is one of the rank's, by its ending.
func (i *Info) file(ending string) string {
	return filepath.Join(i.dir, fmt.Sprintf("r%d.%s", i.Rank, ending))
}

// RecordingPath is the file of the ranks' recordings unless they are told another; %r is the
// rank.
func (i *Info) RecordingPath(root string) string { return filepath.Join(i.Dir(root), "r%r.rec") }

// Prepare makes the folder of the rank's job. It refuses another user's.
func (i *Info) Prepare(root string) error {
	for _, dir := range []string{root, i.Dir(root)} {
		if err := makePrivate(dir); err != nil {
			return err
		}
	}
	return nil
}

// makePrivate makes a folder for this user alone, unless there is one.
func makePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no folder", dir)
	case !isOwn(info):
		return fmt.Errorf("%s %w", dir, ErrForeign)
	}
	return nil
}

// ErrForeign means that the folder for the jobs of this user is another one's: who made it keeps this user's
// ranks from being asked.
var ErrForeign = errors.New("belongs to another user")

// CheckFolder returns an error if the folder of this user's jobs is there, and another user's.
func CheckFolder(root string) error {
	info, err := os.Lstat(root)
	if err != nil || isOwn(info) {
		return nil
	}
	return fmt.Errorf("%s %w", root, ErrForeign)
}

// Open opens the door of a rank, in the folder of all jobs, and answers whoever comes. The
// process, its host and program are filled in. answer may be called concurrently.
func Open(root string, i Info, answer func(Question) Answer) (*Door, error) {
	i.dir, i.PID, i.Space, i.Began = i.Dir(root), os.Getpid(), process.Space(), time.Now()
	i.Born = process.Born(i.PID)
	i.Host, _ = os.Hostname()
	i.Program = filepath.Base(os.Args[0])
	text, err := json.Marshal(&i)
	if err != nil {
		return nil, fmt.Errorf("door: %w", err)
	}
	if err := i.enter(root, text); err != nil {
		return nil, fmt.Errorf("door: %w", err)
	}
	_ = os.Remove(i.file("sock")) // of a process that had this number and was killed
	listen, err := net.ListenUnix("unix", &net.UnixAddr{Name: i.file("sock"), Net: "unix"})
	if err == nil {
		err = os.Rename(i.file("new"), i.file("json"))
	}
	if err != nil {
		_ = os.Remove(i.file("new"))
		return nil, fmt.Errorf("door: %w", err)
	}
	d := &Door{info: i, listen: listen, answer: answer, end: make(chan struct{})}
	d.served.Go(d.serve) // Close waits for it
	return d, nil
}

// enterTries bounds how often enter tries again.
const enterTries = 100

// enter makes the folders and a first file: nobody removes them from then on. Until then a
// Close or Sweep may, as they are empty.
func (i *Info) enter(root string, text []byte) (err error) {
	for range enterTries {
		if err = i.Prepare(root); err == nil {
			if err = os.WriteFile(i.file("new"), text, 0o600); err != nil {
				_ = os.Remove(i.file("new")) // the disk is full, for example
			}
		}
		if !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return err
}

// serve answers until the door is closed.
func (d *Door) serve() {
	for {
		c, err := d.listen.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many descriptors, for example
			select {
			case <-time.After(100 * time.Millisecond):
			case <-d.end:
			}
			continue
		}
		d.served.Go(func() {
			defer c.Close()
			_ = d.serveOne(c) // nonsense gets no answer, nor a caller that has left
		})
	}
}

func (d *Door) serveOne(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	var q Question
	if err := readLine(c, &q); err != nil {
		return err
	}
	return json.NewEncoder(c).Encode(d.answer(q))
}

// Close closes the door. The folder goes with the last living rank's.
func (d *Door) Close() error {
	var err error
	d.once.Do(func() {
		err = d.listen.Close() // this removes the socket
		close(d.end)
		d.served.Wait()
		err = errors.Join(err, d.info.remove())
		sweepJob(d.info.dir)
		_ = os.Remove(filepath.Dir(d.info.dir)) // if it is empty
	})
	return err
}

// remove removes the rank's files. A process of several jobs has numbered its recordings:
// r3.rec.w2.
func (i *Info) remove() error {
	quoted := Info{Rank: i.Rank, dir: escapeGlob(i.dir)}
	files, err := filepath.Glob(quoted.file("rec*"))
	errs := []error{err}
	for _, file := range append(files, i.file("json"), i.file("sock")) {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
