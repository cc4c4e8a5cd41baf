package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// exchange serves on the loopback device and sends to it at a claimed rate.
func exchange(t *testing.T, bytesPerSec string) (string, error) {
	t.Helper()
	address, served := io.Pipe()
	done := make(chan error, 1)
	go func() { // waited for below
		err := run([]string{"serve", "127.0.0.1"}, served)
		served.Close()
		done <- err
	}()
	line := make([]byte, 64)
	n, err := address.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, address) // the rest of the line; ends with the server
	var out bytes.Buffer
	err = run([]string{"send", strings.TrimSpace(string(line[:n])), bytesPerSec}, &out)
	if err := <-done; err != nil {
		t.Fatalf("serve: %v", err)
	}
	return out.String(), err
}

func TestLoopbackIsFasterThanASlowRate(t *testing.T) {
	out, err := exchange(t, "1000000")
	if !errors.Is(err, errFast) {
		t.Fatalf("1 MB/s over the loopback device: %v, want errFast", err)
	}
	for _, want := range []string{"message  256 KiB", "stream  4096 KiB"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

func TestLoopbackIsSlowerThanAnAbsurdRate(t *testing.T) {
	out, err := exchange(t, "1000000000000000")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "slow") {
		t.Errorf("nothing said of the machine being slow:\n%s", out)
	}
}

func TestAnswerRefusesLongMessages(t *testing.T) {
	long := bytes.NewBuffer([]byte{0xff, 0, 0, 0, 0, 0, 0, 0})
	if err := answer(long); err == nil || !strings.Contains(err.Error(), "allowed") {
		t.Fatalf("a message of 2^63 bytes and more: %v", err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"serve"}, {"send", "a:1"}, {"send", "a:1", "0"}, {"send", "a:1", "fast"}} {
		if err := run(args, io.Discard); err == nil {
			t.Errorf("run(%q): no error", args)
		}
	}
}
