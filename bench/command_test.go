package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon"
)

// commandEnv in the environment makes the test binary the decorum command.
const commandEnv = "DECORUM_BENCH_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandEnv) != "" {
		daemon.Main(nil)
	}
	os.Exit(m.Run())
}

// commandProject is a project without pauses and with one worker, like the other crawlers here.
const commandProject = `
agent: {contact: 'mailto:bench@example.com'}
scope: {max_depth: 1000000}
politeness: {delay: 0s, adaptive: 0}
limits: {workers: 1}
fetch: {allow_private: true}
`

// benchmarkCommand visits b.N pages with the decorum command. The time includes the start of the
// process and all files of a crawl: state, ledger and lines of output.
func benchmarkCommand(b *testing.B) {
	dir := b.TempDir()
	project := filepath.Join(dir, "project.yaml")
	if err := os.WriteFile(project, []byte(commandProject), 0o600); err != nil {
		b.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	c := exec.Command(self, "crawl", "-c", project, "--data", filepath.Join(dir, "data"),
		"--max-pages", strconv.Itoa(b.N), "--progress=none", "--log-level=error", startSite(b).URL+"/page/0")
	c.Env = append(os.Environ(), commandEnv+"=1")
	b.ResetTimer()
	output, err := c.CombinedOutput()
	if err != nil {
		b.Fatalf("the crawl ended with %v, want its limit of pages\n%s", err, output)
	}
}
