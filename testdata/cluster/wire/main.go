// Wire measures whether a link keeps to its rate: how long messages take to cross it, as a ratio to their wire time
// (payload bits over the rate; headers are not counted, so an honest link stays above 1). It neither makes links nor
// shapes them. One process serves, the other sends and judges:
//
//	wire serve 10.0.0.2                        prints HOST:PORT, takes one connection
//	wire send  10.0.0.2:40000 125000000        messages at 125 MB/s; fails when they cross faster
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "wire:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: wire serve HOST | wire send HOST:PORT BYTES_PER_SECOND")

func run(args []string, stdout io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "serve":
		return serve(args[1], stdout)
	case len(args) == 3 && args[0] == "send":
		rate, err := strconv.ParseInt(args[2], 10, 64)
		if err != nil || rate <= 0 {
			return fmt.Errorf("rate %q: want bytes per second, a whole number above 0", args[2])
		}
		return send(args[1], float64(rate), stdout)
	}
	return errUsage
}
