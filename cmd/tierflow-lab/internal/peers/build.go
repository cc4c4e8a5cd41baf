package peers

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit"
)

// peer is another library: how its driver is built, and by which tools.
type peer struct {
	name     string
	packages string   // Debian's
	tools    []string // compiler first
	source   string
	flags    []string // after the source
}

var otherLibraries = []peer{
	{openMPI, "openmpi-bin libopenmpi-dev", []string{"mpicc.openmpi", "mpirun.openmpi"}, "mpi.c", nil},
	{mpich, "mpich libmpich-dev", []string{"mpicc.mpich", "mpiexec.mpich"}, "mpi.c", nil},
	{gloo, "libgloo-dev g++", []string{"g++"}, "gloo.cc", []string{"-std=c++17", "-lgloo", "-lpthread"}},
}

// word returns the library's name in --libraries.
func (l peer) word() string { return strings.ToLower(strings.ReplaceAll(l.name, " ", "")) }

// libraryWords returns the words for --libraries.
func libraryWords() []string { return kit.Words(otherLibraries, peer.word) }

// namesOf returns the libraries' names.
func namesOf(libraries []peer) []string {
	return kit.Words(libraries, func(l peer) string { return l.name })
}

// readLibraries returns the libraries named by --libraries, in our order.
func readLibraries(list string) (named []peer, err error) {
	if list == "" {
		return nil, nil
	}
	words := strings.Split(list, ",")
	for _, w := range words {
		if !slices.Contains(libraryWords(), w) {
			return nil, kit.Usagef("--libraries %s: %q is none of %s", list, w, strings.Join(libraryWords(), ", "))
		}
	}
	for _, l := range otherLibraries {
		if slices.Contains(words, l.word()) {
			named = append(named, l)
		}
	}
	return named, nil
}

// versionOf returns the version of the Debian package of a library, or unknown.
func versionOf(ctx context.Context, l peer) string {
	name, _, _ := strings.Cut(l.packages, " ")
	text, _ := runCommand(ctx, 10*time.Second, "dpkg-query", "-W", "-f", "${Version}", name)
	return cmp.Or(strings.TrimSpace(string(text)), "unknown")
}

// findPeers builds the drivers of the libraries, and notes versions and the missing ones in a table.
func (p *place) findPeers(ctx context.Context, libraries []peer, t *peerTable, notes io.Writer) (found []peer, err error) {
	for _, l := range libraries {
		if why := p.build(ctx, l); why != nil {
			m := missingPeer{l.name, l.packages, why.Error()}
			t.Missing = append(t.Missing, m)
			fmt.Fprintln(notes, "#", m)
			continue
		}
		found = append(found, l)
		t.Versions[l.name] = versionOf(ctx, l)
	}
	return found, ctx.Err()
}

// build compiles a library's driver.
func (p *place) build(ctx context.Context, l peer) error {
	for _, tool := range l.tools {
		if _, err := exec.LookPath(tool); err != nil {
			return err
		}
	}
	words := append([]string{l.tools[0], "-O2", "-o", p.driver(l.name), p.folder + "/" + l.source}, l.flags...)
	_, err := runCommand(ctx, 2*time.Minute, words...)
	return err
}
