// Package tree counts how easy a source tree is to read: lines, pairs of files, arrows back
// up, names and sentences. The tests of cmd/tierflow hold
// some of these numbers; tierflow-lab tree prints all.
package tree
