// Package launcher finds who started this process as a rank of a job. Where that
// launcher has a process manager, it carries one text from rank 0 to all ranks. It
// speaks the wire protocols of PMI-1 and PMIx itself and needs no library of theirs.
//
// It opens no connection between ranks and knows nothing of the text.
//
//	l, err := launcher.Find(os.Getenv)              // reads variables only
//	if l.Place != nil {
//		l.Rank, l.Size, err = l.Place(ctx)       // the variables don't say
//	}
//	if l.Share != nil {
//		text, err = l.Share(ctx, "rank 0's text") // all ranks call it
//		defer l.Leave()
//	}
//
// # Order of launchers
//
// The first of these with its variables in the environment, or the one named by
// TIERFLOW_LAUNCHER:
//
//	name        found by                                          text by
//	tierflow    TIERFLOW_RANK or TIERFLOW_RENDEZVOUS_FD            TIERFLOW_RENDEZVOUS
//	torchrun    RANK or WORLD_SIZE                                 MASTER_ADDR, and a port beside MASTER_PORT
//	pmix        PMIX_RANK, PMIX_NAMESPACE and PMIX_SERVER_URI…     PMIx: mpirun of Open MPI, srun --mpi=pmix
//	pmi         PMI_FD, or PMI_PORT                                PMI-1: mpiexec of MPICH, srun --mpi=pmi2, flux
//	other       a rank and a size as Open MPI, Flux and others set TIERFLOW_RENDEZVOUS
//	slurm       SLURM_STEP_NUM_TASKS above 1                       first host of SLURM_STEP_NODELIST
//	kubernetes  JOB_COMPLETION_INDEX                               TIERFLOW_RENDEZVOUS
//	none                                                           nobody: one rank
//
// Process managers come before Slurm because their ranks inherit its variables: a rank
// of mpirun inside salloc has those of the daemon that started it. A batch script has
// SLURM_PROCID and SLURM_NTASKS without being a rank, so only variables of a step
// count. Variables of a launcher that don't suffice are an error. They never make a
// job of one rank.
//
// # Trust
//
// A text through a process manager is as safe as the manager. PMI-1 hands each rank a
// socket of its own. A PMIx server believes the user number claimed by a client.
package launcher
