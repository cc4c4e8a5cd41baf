// Package foreign reads and writes the files for the choice of algorithms in Open MPI and MPICH, as
// rules: see package planner/rules.
//
//	ompi       the file of coll_tuned_dynamic_rules_filename, versions 1 and 2
//	ompi-json  the same of Open MPI 6
//	han        the file of coll_han_dynamic_rules_filename
//	mpich      the file of MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE, or of compositions,
//	           MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE
//
// [Rows] is the one table of their algorithms and of equal plans. An algorithm without a counterpart
// is left to others, and a [Note] with the line says so. Nothing is guessed.
//
// A program that imports the package may force plans by these algorithms, as bcast:ompi=6/65536 or
// bcast:mpich=binomial:
//
//	import _ "github.com/tierflow/tierflow/planner/rules/foreign"
//
// tierflow's commands and its C library do. tierflow run replaces such words in TIERFLOW_PLAN, so the
// programs that it starts need no import.
//
// Libraries mean different things by the size of a message. Open MPI counts all blocks of an
// allgather, a gather, a scatter and an alltoall, nothing of an alltoallv and a barrier, and one
// element for each rank of a scan. Reading and writing converts them.
//
// Open MPI before 6 takes a section of its classic file for its number of ranks and more. Its
// main branch takes it for the next smaller numbers. So a file is for a version.
package foreign
