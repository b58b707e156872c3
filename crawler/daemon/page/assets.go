package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
)

//go:embed templates assets
var embeddedFiles embed.FS

// assets are the files that pages load, each under a name with its hash, so that
// browsers may keep them for good.
type assets struct {
	byURL     map[string]asset
	urlByName map[string]string // by the name of the file
}

type asset struct {
	mediaType string
	body      []byte
}

// mediaTypes are those of the assets: the machine may know others.
var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

func loadAssets() assets {
	a := assets{map[string]asset{}, map[string]string{}}
	names, err := fs.Glob(embeddedFiles, "assets/*")
	if err != nil {
		panic(err) // the pattern is well-formed
	}
	for _, name := range names {
		body, err := embeddedFiles.ReadFile(name)
		if err != nil {
			panic(err) // it is in the binary
		}
		sum := sha256.Sum256(body)
		file, ext := path.Base(name), path.Ext(name)
		url := "/assets/" + file[:len(file)-len(ext)] + "-" + hex.EncodeToString(sum[:6]) + ext
		a.urlByName[file] = url
		a.byURL[url] = asset{mediaTypes[ext], body}
	}
	return a
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
	w.Write(f.body) // a browser that has gone away is nobody's error
}
