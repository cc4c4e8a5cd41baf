package memory

import (
	"os"
	"path/filepath"
	"testing"
)

// The least counts: of what the system has, and of what each control group leaves. Files that can be
// dropped are left.
func TestAvailable(t *testing.T) {
	const meminfo = "MemTotal: 8388608 kB\nMemAvailable:    4194304 kB\nBuffers: 1 kB\n"
	for _, test := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing is said", nil, 0},
		{"the system", map[string]string{"proc/meminfo": meminfo}, 4 << 30},
		{"no limit", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.current": "5\n"}, 4 << 30},
		{"a group", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1000000\n",
			"sys/fs/cgroup/a/b/memory.current": "600000\n", "sys/fs/cgroup/a/b/memory.stat": "anon 500\nactive_file 7\ninactive_file 100000\n",
		}, 500007},
		{"a group around it", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "1000\n", "sys/fs/cgroup/a/b/memory.max": "max\n"}, 1000},
		{"a container", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "2000\n"}, 2000},
		{"nothing is left", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "2000\n", "sys/fs/cgroup/memory.current": "2000\n"}, 1},
		{"the first version", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "3:cpu:/x\n2:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "5000\n",
			"sys/fs/cgroup/memory/a/memory.usage_in_bytes": "1000\n",
		}, 4000},
	} {
		root := t.TempDir()
		for name, text := range test.files {
			file := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := availableIn(root); got != test.want {
			t.Errorf("%s: %d bytes, want %d", test.name, got, test.want)
		}
	}
}
