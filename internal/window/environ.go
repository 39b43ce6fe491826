package window

import "runtime"

// environment is what a desktop program needs of our environment, and nothing that could be a key: that
// is why names are listed instead of left out.
func environment(getenv func(string) string) []string {
	names := []string{
		"HOME", "USER", "LOGNAME", "PATH", "TMPDIR", "TZ",
		"LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LC_TIME", "LC_NUMERIC", "LC_COLLATE", "LOCALE_ARCHIVE",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
		// the session
		"DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "BROWSER", "SESSION_MANAGER",
		"XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_DATA_DIRS", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_CACHE_HOME", "XDG_STATE_HOME",
		"XDG_CURRENT_DESKTOP", "XDG_SESSION_DESKTOP", "XDG_SESSION_TYPE", "XDG_SESSION_ID", "XDG_SEAT", "XDG_MENU_PREFIX",
		"XDG_ACTIVATION_TOKEN", "DESKTOP_STARTUP_ID", "DESKTOP_SESSION", "GNOME_DESKTOP_SESSION_ID", "KDE_FULL_SESSION", "KDE_SESSION_VERSION",
		// toolkits
		"GDK_BACKEND", "GDK_SCALE", "GDK_DPI_SCALE", "GDK_PIXBUF_MODULE_FILE", "GTK_THEME", "GTK_IM_MODULE", "QT_IM_MODULE", "XMODIFIERS",
		"XCURSOR_THEME", "XCURSOR_SIZE", "GIO_EXTRA_MODULES", "GSETTINGS_SCHEMA_DIR", "FONTCONFIG_FILE", "FONTCONFIG_PATH", "LD_LIBRARY_PATH",
		"LIBGL_ALWAYS_SOFTWARE", "WEBKIT_DISABLE_DMABUF_RENDERER", "WEBKIT_DISABLE_COMPOSITING_MODE",
	}
	switch runtime.GOOS {
	case "windows":
		names = append(names, "SystemRoot", "SystemDrive", "windir", "ComSpec", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "USERNAME",
			"HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "ProgramData", "ProgramFiles", "ProgramFiles(x86)", "ProgramW6432",
			"CommonProgramFiles", "CommonProgramFiles(x86)", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "OS")
	case "darwin":
		names = append(names, "__CF_USER_TEXT_ENCODING")
	}
	var env []string
	for _, name := range names {
		if value := getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// hasDisplay reports whether there is a desktop to open a window on.
func hasDisplay(getenv func(string) string) bool {
	return runtime.GOOS == "windows" || runtime.GOOS == "darwin" || getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != ""
}
