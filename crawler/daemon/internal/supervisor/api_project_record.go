package supervisor

import (
	"crypto/sha256"
	"fmt"
	"slices"
)

// An apiProjectRecord is the entry in daemon.json of a project that came by the API.
type apiProjectRecord struct {
	// FileHashes holds the SHA-256 of the project file that the API wrote last and, during a
	// replacement, also that of the previous file. A file with another hash is the operator's.
	FileHashes []string `json:"files"`
	// OutputPaths holds the JSONL files and WARC directories that the project has begun, the newest last.
	OutputPaths []string `json:"outputs,omitempty"`
}

// sha256Hex returns the SHA-256 of a text, in lower-case hexadecimal.
func sha256Hex(text []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// isProjectFileFromAPI reports whether text, the file of a project, is one that the API wrote.
func (w *daemonStateStore) isProjectFileFromAPI(project string, text []byte) bool {
	return slices.Contains(w.current().APIProjects[project].FileHashes, sha256Hex(text))
}

// addAPIProjectFileHash records that the API is about to write the file of a project.
func (w *daemonStateStore) addAPIProjectFileHash(project, sum string) error {
	return w.updateAPIProjectRecord(project, func(r *apiProjectRecord) {
		r.FileHashes = append(withoutItem(r.FileHashes, sum), sum)
	})
}

// setAPIProjectFileHash records that the API has written the file of a project, and drops the hashes of
// earlier files.
func (w *daemonStateStore) setAPIProjectFileHash(project, sum string) error {
	return w.updateAPIProjectRecord(project, func(r *apiProjectRecord) { r.FileHashes = []string{sum} })
}

// isKnownOutputFile reports whether a project that came by the API has begun the output at path.
func (w *daemonStateStore) isKnownOutputFile(project, path string) bool {
	return slices.Contains(w.current().APIProjects[project].OutputPaths, path)
}

// addKnownOutputFile records that a project that came by the API begins the output at path. It drops
// the oldest records beyond maxKnownOutputs.
func (w *daemonStateStore) addKnownOutputFile(project, path string) error {
	return w.updateAPIProjectRecord(project, func(r *apiProjectRecord) {
		r.OutputPaths = append(withoutItem(r.OutputPaths, path), path)
		r.OutputPaths = r.OutputPaths[max(0, len(r.OutputPaths)-maxKnownOutputs):]
	})
}

// maxKnownOutputs limits the outputs that are recorded for a project. It is a constant because a project
// begins a new output only when its project file names another.
const maxKnownOutputs = 100

// updateAPIProjectRecord applies change to the record of a project, and writes daemon.json.
func (w *daemonStateStore) updateAPIProjectRecord(project string, change func(*apiProjectRecord)) error {
	return w.update(func(t *savedDaemonState) {
		r := t.APIProjects[project]
		change(&r)
		t.APIProjects[project] = r
	})
}

// withoutItem returns a copy of list without the elements equal to item.
func withoutItem(list []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == item })
}
