//go:build linux && (amd64 || arm64)

package window

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/ebitengine/purego"
)

// object is a GObject, or another pointer that belongs to C.
type object uintptr

// library has the C functions that we call, under the names of the tags: their documentation is
// docs.gtk.org and webkitgtk.org/reference/webkit2gtk/stable. All but g_idle_add belong to GTK's thread.
type library struct {
	GTKInit      func(argc, argv uintptr) bool                                                `c:"gtk_init_check"`
	Main         func()                                                                       `c:"gtk_main"`
	Quit         func()                                                                       `c:"gtk_main_quit"`
	IdleAdd      func(callback, data uintptr)                                                 `c:"g_idle_add"`
	SetPrgname   func(name string)                                                            `c:"g_set_prgname"`
	SetAppName   func(name string)                                                            `c:"g_set_application_name"`
	DownloadsDir func(directory int32) string                                                 `c:"g_get_user_special_dir"`
	Free         func(memory object)                                                          `c:"g_free"`
	Unref        func(o object)                                                               `c:"g_object_unref"`
	New          func(gtype uintptr, n uint32, names, values unsafe.Pointer) object           `c:"g_object_new_with_properties"`
	ValueInit    func(value unsafe.Pointer, gtype uintptr)                                    `c:"g_value_init"`
	ValueString  func(value unsafe.Pointer, text string)                                      `c:"g_value_set_string"`
	Connect      func(o object, signal string, callback, data, destroy uintptr, flags uint32) `c:"g_signal_connect_data"`
	Sigaction    func(signal int32, set, get unsafe.Pointer) int32                            `c:"sigaction"`

	WindowNew         func(kind int32) object                                                        `c:"gtk_window_new"`
	WindowTitle       func(window object, title string)                                              `c:"gtk_window_set_title"`
	WindowDefaultSize func(window object, width, height int32)                                       `c:"gtk_window_set_default_size"`
	WindowPresent     func(window object)                                                            `c:"gtk_window_present"`
	SizeRequest       func(widget object, width, height int32)                                       `c:"gtk_widget_set_size_request"`
	Add               func(container, widget object)                                                 `c:"gtk_container_add"`
	ShowAll           func(widget object)                                                            `c:"gtk_widget_show_all"`
	Destroy           func(widget object)                                                            `c:"gtk_widget_destroy"`
	GrabFocus         func(widget object)                                                            `c:"gtk_widget_grab_focus"`
	ChooserNew        func(title string, parent object, action int32, accept, cancel uintptr) object `c:"gtk_file_chooser_native_new"`
	ChooserRun        func(dialog object) int32                                                      `c:"gtk_native_dialog_run"`
	ChooserConfirm    func(chooser object, confirm bool)                                             `c:"gtk_file_chooser_set_do_overwrite_confirmation"`
	ChooserFolder     func(chooser object, folder string) bool                                       `c:"gtk_file_chooser_set_current_folder"`
	ChooserName       func(chooser object, name string)                                              `c:"gtk_file_chooser_set_current_name"`
	ChooserURI        func(chooser object) object                                                    `c:"gtk_file_chooser_get_uri"`

	ManagerType  func() uintptr                                     `c:"webkit_website_data_manager_get_type"`
	ManagerProxy func(manager object, mode int32, settings uintptr) `c:"webkit_website_data_manager_set_network_proxy_settings"`
	ContextNew   func(manager object) object                        `c:"webkit_web_context_new_with_website_data_manager"`
	Sandbox      func(context object, on bool)                      `c:"webkit_web_context_set_sandbox_enabled"`
	Cookies      func(context object) object                        `c:"webkit_web_context_get_cookie_manager"`
	CookieFile   func(cookies object, file string, format int32)    `c:"webkit_cookie_manager_set_persistent_storage"`
	ViewNew      func(context object) object                        `c:"webkit_web_view_new_with_context"`
	ViewLoad     func(view object, uri string)                      `c:"webkit_web_view_load_uri"`
	ViewURI      func(view object) string                           `c:"webkit_web_view_get_uri"`
	ViewTitle    func(view object) string                           `c:"webkit_web_view_get_title"`
	ViewTryClose func(view object)                                  `c:"webkit_web_view_try_close"`
	Action       func(decision object) object                       `c:"webkit_navigation_policy_decision_get_navigation_action"`
	ActionClick  func(action object) bool                           `c:"webkit_navigation_action_is_user_gesture"`
	ActionAsk    func(action object) object                         `c:"webkit_navigation_action_get_request"`
	RequestURI   func(request object) string                        `c:"webkit_uri_request_get_uri"`
	Ignore       func(decision object)                              `c:"webkit_policy_decision_ignore"`
	Download     func(decision object)                              `c:"webkit_policy_decision_download"`
	Showable     func(decision object) bool                         `c:"webkit_response_policy_decision_is_mime_type_supported"`
	SaveTo       func(download object, uri object)                  `c:"webkit_download_set_destination"`
	SaveOver     func(download object, allowed bool)                `c:"webkit_download_set_allow_overwrite"`
	SaveCancel   func(download object)                              `c:"webkit_download_cancel"`
}

// openLibrary loads GTK 3 and WebKitGTK 4.1. The error says what is missing.
func openLibrary() (*library, error) {
	var handles []uintptr
	for _, name := range []string{"libgtk-3.so.0", "libwebkit2gtk-4.1.so.0"} {
		handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be loaded: %w", name, err)
		}
		handles = append(handles, handle)
	}
	var lib library
	fields := reflect.ValueOf(&lib).Elem()
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Tag.Get("c")
		address, err := lookUp(handles, name)
		if err != nil {
			return nil, err
		}
		purego.RegisterFunc(fields.Field(i).Addr().Interface(), address)
	}
	return &lib, nil
}

func lookUp(handles []uintptr, name string) (address uintptr, err error) {
	for _, handle := range handles { // dlsym looks in a library's dependencies, too
		if address, err = purego.Dlsym(handle, name); err == nil {
			return address, nil
		}
	}
	return 0, fmt.Errorf("WebKitGTK 4.1 here is too old: %w", err)
}

// connect calls a Go function for a signal. Its parameters are those of the signal's C handler, up to the
// last one that is used; its result is the handler's, 0 when that has none. Like the object, it is never freed.
func (lib *library) connect(o object, signal string, handler any) {
	lib.Connect(o, signal, purego.NewCallback(handler), 0, 0, 0)
}

// newDataManager makes a WebKitWebsiteDataManager that keeps everything in a folder. Its own constructor
// takes a variable number of arguments, which not every machine passes as others.
func (lib *library) newDataManager(folder string) object {
	const typeString = 16 << 2 // G_TYPE_STRING
	type value struct {        // GValue
		gtype uintptr
		data  [2]uint64
	}
	names := [...]*byte{cString("base-data-directory"), cString("base-cache-directory")}
	values := new([len(names)]value)
	for i := range values {
		lib.ValueInit(unsafe.Pointer(&values[i]), typeString)
		lib.ValueString(unsafe.Pointer(&values[i]), folder)
	}
	return lib.New(lib.ManagerType(), uint32(len(names)), unsafe.Pointer(&names), unsafe.Pointer(values))
}

func cString(s string) *byte { return &append([]byte(s), 0)[0] }
