package ftptest_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/jlaffaye/ftp"

	"github.com/decorum-crawler/decorum/crawler/ftpfetch/ftptest"
)

// exampleTB takes the place of a test's *testing.T.
type exampleTB struct {
	testing.TB
	cleanups []func()
}

func (*exampleTB) Helper()            {}
func (*exampleTB) Fatal(args ...any)  { panic(fmt.Sprint(args...)) }
func (t *exampleTB) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

// A test starts a server, fetches from it, and checks the commands that the server received.
func Example() {
	t := new(exampleTB) // in a test: t *testing.T
	dir, err := os.MkdirTemp("", "ftptest")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	server := ftptest.Start(t, dir, nil)
	client, err := ftp.Dial(server.Addr)
	if err == nil {
		err = client.Login("anonymous", "bot@example.org")
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	file, err := client.Retr("a.txt")
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _ := io.ReadAll(file)
	fmt.Println(string(text), file.Close(), client.Quit())
	fmt.Println(server.CommandsNamed("USER", "RETR"))
	for _, f := range t.cleanups {
		f()
	}
	// Output:
	// hello <nil> <nil>
	// [USER anonymous RETR a.txt]
}
