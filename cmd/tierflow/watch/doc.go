// Package watch has the commands that look at running jobs of this user on this machine: ps
// lists what their ranks are in, diagnose says why a job stands still, top how fast they are. They knock at the
// ranks' doors, see package door. A rank that is stopped or dead is seen through its recording.
package watch
