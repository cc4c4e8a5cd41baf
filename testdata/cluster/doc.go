// Package cluster holds the script cluster and its test. The script emulates a cluster on one Linux machine: network
// namespaces with shaped links. Only tierflow-lab peers imports the package, to carry the script along. README.md
// explains its use:
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
