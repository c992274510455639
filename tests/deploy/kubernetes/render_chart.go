// render_chart renders a Helm chart as `helm template` does, for the part of Helm that our chart uses: Go's
// templates with sprig's functions, and Helm's include, toYaml and required.
//
//	render_chart CHART RELEASE NAMESPACE [VALUES.yaml]
//
// It prints JSON: {"values": the merged values, "files": {template: text}}.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "render_chart:", err)
		os.Exit(1)
	}
}

// read returns a file's content as JSON knows it: Helm's numbers are floats too.
func read(path string) map[string]interface{} {
	text, err := os.ReadFile(path)
	check(err)
	var content map[string]interface{}
	check(yaml.Unmarshal(text, &content))
	packed, err := json.Marshal(content)
	check(err)
	result := map[string]interface{}{}
	check(json.Unmarshal(packed, &result))
	return result
}

// merge puts what is over onto what is under: maps key by key, all else as a whole; null removes a key.
func merge(under, over map[string]interface{}) {
	for key, value := range over {
		if value == nil {
			delete(under, key)
			continue
		}
		inner, is := value.(map[string]interface{})
		below, was := under[key].(map[string]interface{})
		if is && was {
			merge(below, inner)
		} else {
			under[key] = value
		}
	}
}

// toYaml goes by JSON, so that whole floats are written as integers.
func toYaml(value interface{}) (string, error) {
	packed, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	var content interface{}
	if err := yaml.Unmarshal(packed, &content); err != nil {
		return "", err
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err = encoder.Encode(content)
	return strings.TrimSuffix(out.String(), "\n"), err
}

func functions(set *template.Template) template.FuncMap {
	all := sprig.TxtFuncMap()
	delete(all, "env") // Helm lacks these two.
	delete(all, "expandenv")
	all["toYaml"] = toYaml
	all["include"] = func(name string, data interface{}) (string, error) {
		var out strings.Builder
		err := set.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	all["required"] = func(warning string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, errors.New(warning)
		}
		return value, nil
	}
	return all
}

func main() {
	if len(os.Args) < 4 {
		check(errors.New("usage: render_chart CHART RELEASE NAMESPACE [VALUES.yaml]"))
	}
	chart := os.Args[1]
	values := read(filepath.Join(chart, "values.yaml"))
	if len(os.Args) > 4 {
		merge(values, read(os.Args[4]))
	}
	about := read(filepath.Join(chart, "Chart.yaml"))
	told := map[string]interface{}{}
	for key, value := range about { // Chart.yaml's appVersion is .Chart.AppVersion.
		told[strings.ToUpper(key[:1])+key[1:]] = value
	}
	data := map[string]interface{}{
		"Values": values,
		"Chart":  told,
		"Release": map[string]interface{}{
			"Name": os.Args[2], "Namespace": os.Args[3], "Service": "Helm", "IsInstall": true, "Revision": 1,
		},
	}

	set := template.New("chart").Option("missingkey=error")
	set.Funcs(functions(set))
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	check(err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		check(err)
		_, err = set.New(filepath.Base(path)).Parse(string(text))
		check(err)
	}
	files := map[string]string{}
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasPrefix(name, "_") {
			continue
		}
		var out strings.Builder
		check(set.ExecuteTemplate(&out, name, data))
		files[name] = out.String()
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]interface{}{"values": values, "files": files}))
}
