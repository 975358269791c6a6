# fish completion for insist. Commands and options are asked of the program itself, so this need not follow its changes.

function __insist_commands
    insist help 2>/dev/null | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on { name = $1; sub(/^ *[^ ]+ +/, ""); print name "\t" $0 }'
end

function __insist_command
    for word in (commandline -opc)[2..-1]
        if contains -- $word (__insist_commands | string replace -r '\t.*' '')
            echo $word
            return 0
        end
    end
    return 1
end

function __insist_options
    begin
        insist help 2>/dev/null
        set -l command (__insist_command)
        and insist help $command 2>/dev/null
    end | string match -r -- '^ +(?:-[a-zA-Z], )?--[a-z-]+' | string match -r -- '--[a-z-]+' | sort -u
end

function __insist_presets
    insist presets 2>/dev/null | string replace -r '\s.*' ''
end

complete -c insist -f
complete -c insist -n 'not __insist_command' -a '(__insist_commands)'
complete -c insist -n 'test (__insist_command; or true) = help' -a '(__insist_commands)'
complete -c insist -n 'test (__insist_command; or true) = presets' -a '(__insist_presets)'
complete -c insist -n 'string match -q -- "-*" (commandline -ct)' -a '(__insist_options)'
complete -c insist -l policy -s p -x -a '(__insist_presets)'
complete -c insist -l config -s c -r -F
complete -c insist -l compare -r -F
complete -c insist -l html -r -F
complete -c insist -l output -s o -x -a 'table json'
complete -c insist -l priority -x -a 'critical high normal'
complete -c insist -l severity -x -a 'critical warning info'
complete -c insist -l state -x -n 'test (__insist_command; or true) = alerts' -a 'standing cleared all'
complete -c insist -l state -x -n 'test (__insist_command; or true) != alerts' -a 'pending running waiting completed dead cancelled'
complete -c insist -l scope -x -a 'enqueue read operate admin'
complete -c insist -n 'test (__insist_command; or true) = dead' -a 'list summary export'
complete -c insist -n 'test (__insist_command; or true) = dest' -a 'list show pause resume contingency'
complete -c insist -n 'test (__insist_command; or true) = incidents' -a 'list show report note'
complete -c insist -n 'test (__insist_command; or true) = errors' -a 'list forget'
complete -c insist -n 'test (__insist_command; or true) = audit' -a 'verify'
