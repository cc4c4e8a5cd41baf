//go:build unix

package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tierflow/tierflow/levels/join/env"
)

// forever is longer than any test waits, and an end for processes that a failing test leaves.
const forever = 3 * time.Minute

// rankPrograms are what ranks of tests run; args may end in words that only mark the process.
var rankPrograms = map[string]func(args []string){
	"env":        printEnv,
	"fail":       fail,
	"sleep":      func([]string) { pause(forever) },
	"stubborn":   stubborn,
	"deaf":       deaf,
	"parent":     parent,
	"fork":       fork,
	"suicide":    suicide,
	"bereft":     bereft,
	"partial":    func([]string) { fmt.Print("no newline"); fmt.Fprint(os.Stderr, "nor here") },
	"long":       func([]string) { fmt.Println(strings.Repeat("x", maxLine+5)) },
	"chatty":     chatty,
	"saves":      saves,
	"signals":    signals,
	"rendezvous": rendezvous,
	"late":       late,
	"secret":     secret,
	"daemon":     daemon,
	"exported":   exported,
	"guest":      guest,
}

func rank() int {
	r, err := strconv.Atoi(os.Getenv(env.Rank))
	check(err)
	return r
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
}

// printEnv prints what the rank was given, the secret only by its length.
func printEnv([]string) {
	var vars []string
	for _, kv := range os.Environ() {
		if key, value, _ := strings.Cut(kv, "="); key == env.Secret {
			vars = append(vars, fmt.Sprintf("%s:%d", key, len(value)))
		} else if strings.HasPrefix(key, env.Prefix) && key != env.Rendezvous && key != env.StateFD {
			vars = append(vars, kv)
		}
	}
	slices.Sort(vars)
	in, err := io.ReadAll(os.Stdin)
	check(err)
	dir, err := os.Getwd()
	check(err)
	fmt.Printf("%s stdin=%d dir=%s\n", strings.ReplaceAll(strings.Join(vars, " "), env.Prefix, ""), len(in), dir)
}

// fail exits as rank args[0] with status args[1] after 12 lines, once other ranks ignore SIGTERM: each has made a file in the
// folder args[2] then.
func fail(args []string) {
	if strconv.Itoa(rank()) != args[0] {
		ignoreEndings()
		check(os.WriteFile(filepath.Join(args[2], strconv.Itoa(rank())), nil, 0o600))
		stubborn(nil)
	}
	size, err := strconv.Atoi(os.Getenv(env.Size))
	check(err)
	poll(context.Background(), func() bool {
		files, err := os.ReadDir(args[2])
		check(err)
		return len(files) == size-1
	})
	for i := range 12 {
		fmt.Fprintf(os.Stderr, "line %d\n", i)
	}
	status, err := strconv.Atoi(args[1])
	check(err)
	os.Exit(status)
}

func ignoreEndings() { signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) }

func stubborn([]string) {
	ignoreEndings()
	fmt.Println("stubborn")
	pause(forever)
}

// deaf goes on after an interrupt, and says so.
func deaf([]string) {
	interrupts := make(chan os.Signal, 1)
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	signal.Notify(interrupts, syscall.SIGINT)
	fmt.Println("deaf")
	<-interrupts
	fmt.Println("goes on")
	pause(forever)
}

// parent starts a child with its marks and waits for ever.
func parent(args []string) {
	fork(args)
	pause(forever)
}

// fork starts a child that ignores SIGTERM and has this rank's output open, and leaves it.
func fork(args []string) {
	cmd := exec.Command(os.Args[0], append([]string{"rank", "stubborn"}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	check(cmd.Start())
}

// daemon is fork with a child that leaves the process group.
func daemon(args []string) {
	cmd := exec.Command(os.Args[0], append([]string{"rank", "sleep"}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	check(cmd.Start())
}

func suicide([]string) {
	if rank() == 1 {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	pause(forever)
}

// bereft exits as rank 0 before rank 1, which it would have lost, is seen to die.
// They meet at a file.
func bereft(args []string) {
	if rank() == 0 {
		poll(context.Background(), func() bool { _, err := os.Stat(args[0]); return err == nil })
		os.Exit(1)
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	check(os.WriteFile(args[0], nil, 0o600))
	<-terminated // the launcher knows of rank 0's end
	suicide(nil)
}

func chatty([]string) {
	for i := range 2000 {
		fmt.Printf("%d:%s\n", i, strings.Repeat(strconv.Itoa(rank()), 60))
	}
}

// saves is ready, and rank 0 takes some time to end after an interrupt.
func saves([]string) {
	interrupts := make(chan os.Signal, 1)
	if rank() == 0 {
		signal.Notify(interrupts, syscall.SIGINT)
	}
	fmt.Println("ready")
	<-interrupts
	pause(termGrace + termGrace/2)
	fmt.Println("saved")
	os.Exit(130)
}

// signals prints the signals it gets, and ends with the first that ends jobs; args: whatever marks the process.
func signals([]string) {
	ch := make(chan os.Signal, 8)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTERM)
	fmt.Println("listening")
	for s := range ch {
		fmt.Println("got", nameOf(s))
		if isEnding(s.(syscall.Signal)) {
			return
		}
	}
}

// rendezvous lets every rank greet rank 0 over the addresses and the descriptor it was given.
func rendezvous([]string) {
	addrs := os.Getenv(env.Rendezvous)
	if rank() != 0 {
		c, err := net.DialTimeout("tcp", strings.Split(addrs, ",")[0], 5*time.Second)
		check(err)
		_, err = c.Write([]byte{byte(rank())})
		check(err)
		check(c.Close())
		return
	}
	fd, err := strconv.Atoi(os.Getenv(env.RendezvousFD))
	check(err)
	l, err := net.FileListener(os.NewFile(uintptr(fd), "rendezvous"))
	check(err)
	size, err := strconv.Atoi(os.Getenv(env.Size))
	check(err)
	var ranks []int
	for range size - 1 {
		c, err := l.Accept()
		check(err)
		b, err := io.ReadAll(c)
		check(err)
		ranks = append(ranks, int(b[0]))
	}
	slices.Sort(ranks)
	fmt.Println("at", addrs, "met", ranks)
}

// late dials rank 0 after that has ended, which nobody may answer.
func late([]string) {
	if rank() == 0 {
		return
	}
	if !poll(context.Background(), func() bool {
		c, err := net.Dial("tcp", os.Getenv(env.Rendezvous))
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}) {
		check(errors.New("somebody answers at the address of a rank that has ended"))
	}
}

// secret fails when any command line shows the job's secret.
func secret([]string) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	check(err)
	key := []byte(os.Getenv(env.Secret))
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && bytes.Contains(line, key) {
			check(fmt.Errorf("the secret is in %s", file))
		}
	}
	fmt.Println("looked at", len(files) > 0)
}
