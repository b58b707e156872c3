package supervisor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/project"
)

// projectPaths holds the directories of a daemon: that of its state and that of the project files. Both
// are absolute.
type projectPaths struct {
	DataDir         datadir.StateDir
	ProjectFilesDir string
}

// projectStateDir returns the directory with the state of a project.
func (d projectPaths) projectStateDir(name string) datadir.StateDir {
	return datadir.StateDir(d.DataDir.Path(filepath.Join(datadir.ProjectsDir, name)))
}

// projectFilePath returns the path of the file of a project.
func (d projectPaths) projectFilePath(name string) string {
	return filepath.Join(d.ProjectFilesDir, name+projectExt)
}

// isForbiddenOutputPath reports whether outputPath is a file of the project's state, a place in the
// daemon's directory outside of the project's own, or a place among the project files. A relative path
// is in the project's directory; the empty path is allowed.
func (d projectPaths) isForbiddenOutputPath(name, outputPath string) bool {
	projectDir := d.projectStateDir(name)
	if outputPath != "" && !filepath.IsAbs(outputPath) {
		outputPath = projectDir.Path(outputPath)
	}
	return projectDir.IsOwnStateFile(outputPath) || outputPath != "" &&
		!datadir.IsWithin(outputPath, string(projectDir)) && (datadir.IsWithin(outputPath, string(d.DataDir)) ||
		filepath.Dir(outputPath) == d.ProjectFilesDir)
}

// makePathsAbsolute makes the paths of a project absolute: relative outputs are in the project's
// directory, relative inputs beside its file.
func (d projectPaths) makePathsAbsolute(p *project.Project) {
	p.Store.Path = string(d.projectStateDir(p.Name))
	p.ForEachFilePath(func(f project.FilePathField, _ string, path *string) {
		if f.Use != project.StateDirectory {
			*path = d.absolutePath(p.Name, f.Use, *path)
		}
	})
}

// absolutePath returns the absolute form of a path in a project file.
func (d projectPaths) absolutePath(projectName string, use project.FilePathUse, path string) string {
	return use.Resolve(path, d.ProjectFilesDir, string(d.projectStateDir(projectName)))
}

// moveToDeleted moves the file and the state of a project to the directory of deleted projects. If it
// returns an error, both are where they were: otherwise a project whose file is on a read-only file
// system would start again without its state.
func (d projectPaths) moveToDeleted(name string) error {
	deletedPath := d.DataDir.Path(filepath.Join(datadir.DeletedDir,
		name+"-"+time.Now().UTC().Format("20060102T150405.000Z")))
	if err := os.MkdirAll(filepath.Dir(deletedPath), datadir.PrivateDirMode); err != nil {
		return err
	}
	// Move the state first, then the file. A project that never ran has no state.
	err := os.Rename(string(d.projectStateDir(name)), deletedPath)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.Mkdir(deletedPath, datadir.PrivateDirMode)
	}
	if err != nil {
		return err
	}
	file := filepath.Join(deletedPath, name+projectExt)
	if err = moveProjectFile(d.projectFilePath(name), file); err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// The file could not be moved: remove its copy, if any, and move the state back.
	_ = os.Remove(file)
	if os.Remove(deletedPath) != nil {
		err = errors.Join(err, os.Rename(deletedPath, string(d.projectStateDir(name))))
	}
	return err
}

// moveProjectFile moves a project file. Unlike os.Rename it can move it to another file system.
func moveProjectFile(from, to string) error {
	text, err := readProjectFileBytes(from)
	if err != nil {
		return err
	}
	if err := datadir.WriteFileAtomic(to, text); err != nil {
		return err
	}
	return os.Remove(from)
}
