package launch

import "github.com/tierflow/tierflow/levels/join/env"

const firstFD = 3 // of exec.Cmd's ExtraFiles

var jobKeys = []string{env.Rank, env.Size, env.LocalRank, env.LocalSize, env.Rendezvous, env.RendezvousFD, env.BlameFD, env.Secret, env.Node, env.Launcher, env.StateFD, env.LobbyFD, env.Restarts}
