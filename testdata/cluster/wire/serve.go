package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// headerBytes is the length of a message's header, the payload's length as a big-endian number.
const headerBytes = 8

// acceptWithin bounds the wait for the sender, so that a server nobody reaches goes away.
const acceptWithin = 10 * time.Second

// serve prints the address it listens on, then answers each message of one connection with one byte.
func serve(host string, stdout io.Writer) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := listener.(*net.TCPListener).SetDeadline(time.Now().Add(acceptWithin)); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(stdout, listener.Addr()); err != nil {
		return err
	}
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	return answer(conn)
}

// answer returns nil when the sender closes between two messages. Payloads are dropped as they come, never held.
func answer(conn io.ReadWriter) error {
	var header [headerBytes]byte
	for {
		if _, err := io.ReadFull(conn, header[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("header: %w", err)
		}
		length := binary.BigEndian.Uint64(header[:])
		if length > streamBytes {
			return fmt.Errorf("message of %d bytes: at most %d are allowed", length, streamBytes)
		}
		if _, err := io.CopyN(io.Discard, conn, int64(length)); err != nil {
			return fmt.Errorf("payload of %d bytes: %w", length, err)
		}
		if _, err := conn.Write([]byte{1}); err != nil {
			return fmt.Errorf("answer: %w", err)
		}
	}
}
