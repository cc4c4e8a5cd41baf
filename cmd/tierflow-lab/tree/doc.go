// Package tree counts what makes a source tree easy or hard to read: lines, files that use
// each other, arrows that go back up, names and sentences. The tests of cmd/tierflow hold
// some of these numbers; tierflow-lab tree prints all.
package tree
