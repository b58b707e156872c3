package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
)

//go:embed escaped assets
var embeddedFiles embed.FS

// assets holds the files that pages load. The URL of each contains a hash of its content, so that
// browsers may cache it for ever.
type assets struct {
	byURL     map[string]asset  // by path
	urlByName map[string]string // the path of each file, by its name in the folder assets
}

type asset struct {
	mediaType string
	body      []byte
}

// mediaTypes holds the media types of assets by file extension. Package mime would read them from
// files of the machine.
var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// loadAssets returns the embedded assets.
func loadAssets() assets {
	a := assets{map[string]asset{}, map[string]string{}}
	names, err := fs.Glob(embeddedFiles, "assets/*")
	if err != nil {
		panic(err) // the pattern is well-formed
	}
	for _, name := range names {
		body := []byte(readEmbedded(name))
		// Name the file after its content: /assets/NAME-HASH.EXT.
		sum := sha256.Sum256(body)
		file, ext := path.Base(name), path.Ext(name)
		url := "/assets/" + file[:len(file)-len(ext)] + "-" + hex.EncodeToString(sum[:6]) + ext
		a.urlByName[file] = url
		a.byURL[url] = asset{mediaTypes[ext], body}
	}
	return a
}

// readEmbedded returns an embedded file.
func readEmbedded(name string) string {
	body, err := embeddedFiles.ReadFile(name)
	if err != nil {
		panic(err) // it is in the binary
	}
	return string(body)
}

// ServeHTTP serves an asset.
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := a.byURL[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", f.mediaType)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Write(f.body) // it fails only if the browser has gone
}
