package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// before is how many bytes the next one is guessed from.
const before = 16

// corpus is text. Every 20th file, by a hash of its name, is held out.
type corpus struct {
	seen, held []byte
	files      int
	digest     string
}

// most bounds the text: whole files are taken until there is more, in the order of a hash.
const most = 24 << 20

// readCorpus reads the Go files of a folder; empty: the toolchain's source.
func readCorpus(ctx context.Context, dir string) (*corpus, error) {
	if dir == "" {
		root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
		if err != nil {
			return nil, fmt.Errorf("where is Go's source? %w; or say -data FOLDER", err)
		}
		dir = filepath.Join(strings.TrimSpace(string(root)), "src")
	}
	c, all := &corpus{}, sha256.New()
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error { // in lexical order
		if err != nil || e.IsDir() || !strings.HasSuffix(name, ".go") || len(c.seen) > most {
			return err
		}
		short, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		h := fnv.New32a()
		_, _ = h.Write([]byte(filepath.ToSlash(short)))
		if h.Sum32()/20%4 != 0 {
			return nil // a fourth of the files is enough
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		c.files++
		_, _ = all.Write(text)
		if h.Sum32()%20 == 0 {
			c.held = append(c.held, text...)
		} else {
			c.seen = append(c.seen, text...)
		}
		return nil
	})
	if err == nil && min(len(c.seen), len(c.held)) <= before {
		err = fmt.Errorf("%s: %d bytes of Go files to train on, %d to hold out; give more", dir, len(c.seen), len(c.held))
	}
	c.digest = fmt.Sprintf("%x", all.Sum(nil)[:8])
	return c, err
}

// String is a line of key=value.
func (c *corpus) String() string {
	return fmt.Sprintf("files=%d seen_mib=%.1f held_out_mib=%.1f corpus=%s", c.files, float64(len(c.seen))/(1<<20), float64(len(c.held))/(1<<20), c.digest)
}

// batch is a micro-batch: the bytes before each example, and the example's.
type batch struct {
	contexts [][before]byte
	next     []byte
}

// batch draws micro-batch number n, of so many examples: the same on every rank.
func (c *corpus) batch(seed uint64, n, examples int) *batch {
	return pick(c.seen, seed, uint64(n), examples)
}

// unseen draws a batch of what was held out.
func (c *corpus) unseen(n, examples int) *batch { return pick(c.held, 0, uint64(n), examples) }

func pick(text []byte, seed, n uint64, examples int) *batch {
	draw, b := rand.New(rand.NewPCG(seed, n)), &batch{make([][before]byte, examples), make([]byte, examples)}
	for i := range b.next {
		at := draw.IntN(len(text) - before)
		copy(b.contexts[i][:], text[at:])
		b.next[i] = text[at+before]
	}
	return b
}
