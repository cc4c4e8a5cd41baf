// Package sealtest makes TLS connections and sealed links for tests.
package sealtest

import (
	"errors"
	"fmt"
	"net"

	"github.com/tierflow/tierflow/levels/join/seal"
)

// Connect makes the two ends of a connection TLS.
func Connect(a, b net.Conn) (dialler, listener *seal.Conn, err error) {
	config, err := seal.Anonymous("tierflow-test")
	if err != nil {
		return nil, nil, err
	}
	dialled := make(chan error)
	go func() { // waited for below
		var err error
		dialler, err = seal.Client(a, config)
		dialled <- err
	}()
	listener, err = seal.Server(b, config, nil)
	return dialler, listener, errors.Join(err, <-dialled)
}

// Sessions returns the two ends of a sealed link.
func Sessions() (a, b *seal.Session, err error) {
	one, two := net.Pipe()
	defer one.Close()
	defer two.Close()
	dialler, listener, err := Connect(one, two)
	if err != nil {
		return nil, nil, fmt.Errorf("sealtest: %w", err)
	}
	if a, _, err = dialler.Detach(); err != nil {
		return nil, nil, err
	}
	b, _, err = listener.Detach()
	return a, b, err
}
