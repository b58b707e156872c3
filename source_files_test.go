package decorum_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// A sourceFile is a parsed Go file of this repository.
type sourceFile struct {
	name string // its path from the root, with slashes
	text string
	ast  *ast.File
	fset *token.FileSet
}

// readSourceFiles returns all Go files of the repository, the tools' included.
func readSourceFiles(t *testing.T) []sourceFile {
	t.Helper()
	var files []sourceFile
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f := sourceFile{name: filepath.ToSlash(name), text: string(text), fset: token.NewFileSet()}
		f.ast, err = parser.ParseFile(f.fset, name, text, parser.ParseComments)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
