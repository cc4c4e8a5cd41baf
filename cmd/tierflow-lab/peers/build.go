package peers

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
)

// peer is another library: how its driver is built, and which tools that takes.
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

// libraryWords returns the words that --libraries takes.
func libraryWords() []string {
	var words []string
	for _, l := range otherLibraries {
		words = append(words, l.word())
	}
	return words
}

// readLibraries returns the libraries that --libraries names, in our order.
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

// missingPeer is a library that can't be compared.
type missingPeer struct {
	Library  string `json:"library"`
	Packages string `json:"packages"` // Debian's
	Why      string `json:"why"`
}

// String returns the note about the library.
func (m missingPeer) String() string {
	return fmt.Sprintf("without %s, which Debian's packages %s would bring: %s", m.Library, m.Packages, m.Why)
}

// versionOf returns the version of the Debian package of a library, or unknown.
func versionOf(ctx context.Context, l peer) string {
	name, _, _ := strings.Cut(l.packages, " ")
	text, _ := runCommand(ctx, 10*time.Second, "dpkg-query", "-W", "-f", "${Version}", name)
	return cmp.Or(strings.TrimSpace(string(text)), "unknown")
}

// findPeers builds the driver of each library that is installed.
func (p *place) findPeers(ctx context.Context, libraries []peer) (found []string, missing []missingPeer, err error) {
	for _, l := range libraries {
		if why := p.build(ctx, l); why != nil {
			missing = append(missing, missingPeer{l.name, l.packages, why.Error()})
			continue
		}
		found = append(found, l.name)
	}
	return found, missing, ctx.Err()
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
