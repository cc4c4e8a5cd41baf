// Package cluster holds the script cluster, which emulates a cluster of network namespaces with shaped links on one
// Linux machine, and its test. Only tierflow bench peers imports it, to carry the script along; README.md says how to
// use it:
//
//	cluster up 4 --rate 1gbit
//	cluster exec 0 tierflow run --hosts node0,node1,node2,node3 …
//	cluster down
package cluster

import _ "embed"

// Script is the text of cluster, for bash.
//
//go:embed cluster
var Script string
