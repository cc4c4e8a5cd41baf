// Package watch has the commands for running jobs of this user on this machine: ps lists the
// calls of their ranks, diagnose says why a job stands still, top shows their speed. They knock
// at the ranks' doors, see package door. A stopped or dead rank is seen through its recording.
package watch
