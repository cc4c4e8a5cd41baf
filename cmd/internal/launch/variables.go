package launch

import "github.com/tierflow/tierflow/levels/join/launcher"

// The names of a rank's variables; the package comment explains each.
const (
	envPrefix       = "TIERFLOW_"
	envRank         = "TIERFLOW_RANK"
	envSize         = "TIERFLOW_SIZE"
	envLocalRank    = "TIERFLOW_LOCAL_RANK"
	envLocalSize    = "TIERFLOW_LOCAL_SIZE"
	envRendezvous   = "TIERFLOW_RENDEZVOUS"
	envRendezvousFD = "TIERFLOW_RENDEZVOUS_FD"
	envBlameFD      = "TIERFLOW_BLAME_FD"
	envSecret       = "TIERFLOW_SECRET"
	envNode         = "TIERFLOW_NODE"
	envLauncher     = "TIERFLOW_LAUNCHER"
	envDoor         = "TIERFLOW_DOOR"      // read by ranks, and by the agent sweeping up behind them
	envState        = "TIERFLOW_STATE_FD"  // the descriptor of a rank's pipe
	envManaged      = "TIERFLOW_MANAGED"   // read by ranks: they may be asked, moved and measured
	envPlan         = "TIERFLOW_PLAN"      // read by ranks; the agent replaces words of other libraries
	envAdvertise    = "TIERFLOW_ADVERTISE" // read by ranks, and by the agent of rank 0
	envBind         = "TIERFLOW_BIND"      // read by launcher and agent, for a rank's own ranks

	firstFD = 3 // of exec.Cmd's ExtraFiles
)

var jobKeys = []string{envRank, envSize, envLocalRank, envLocalSize, envRendezvous, envRendezvousFD, envBlameFD, envSecret, envNode, envLauncher, envState, launcher.LobbyVariable, launcher.RestartsVariable}
