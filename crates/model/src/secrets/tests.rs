//! What is masked, what stays, and that no secret survives at random.

use super::*;

fn line(words: &[&str]) -> Vec<String> {
    let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    masked(&words)
}

#[test]
fn secrets_on_command_lines_are_masked() {
    for (given, expected) in [
        (
            &["app", "--password=hunter2"][..],
            &["app", "--password=***"][..],
        ),
        (
            &["app", "--db-password", "hunter2", "x"],
            &["app", "--db-password", "***", "x"],
        ),
        (
            &["app", "-password", "hunter2"],
            &["app", "-password", "***"],
        ),
        (
            &["mysql", "-uroot", "-phunter2", "db"],
            &["mysql", "-uroot", "-p***", "db"],
        ),
        (
            &["/usr/bin/mysqldump", "-phunter2"],
            &["/usr/bin/mysqldump", "-p***"],
        ),
        (
            &["sshpass", "-p", "hunter2", "ssh", "h"],
            &["sshpass", "-p", "***", "ssh", "h"],
        ),
        (&["redis-cli", "-a", "hunter2"], &["redis-cli", "-a", "***"]),
        (
            &["java", "-Ddb.password=hunter2", "-jar", "a.jar"],
            &["java", "-Ddb.password=***", "-jar", "a.jar"],
        ),
        (
            &[
                "env",
                "API_TOKEN=hunter2",
                "AWS_SECRET_ACCESS_KEY=hunter2",
                "app",
            ],
            &["env", "API_TOKEN=***", "AWS_SECRET_ACCESS_KEY=***", "app"],
        ),
        (
            &["curl", "-H", "Authorization: Bearer hunter2", "http://h/"],
            &["curl", "-H", "Authorization: Bearer ***", "http://h/"],
        ),
        (
            &["curl", "-H", "X-Api-Key: hunter2"],
            &["curl", "-H", "X-Api-Key: ***"],
        ),
        (
            &["psql", "postgres://me:hunter2@host/db"],
            &["psql", "postgres://me:***@host/db"],
        ),
        (
            &["app", "--url=http://me:hunter2@host?a=1"],
            &["app", "--url=http://me:***@host?a=1"],
        ),
        (
            &["app", "http://host/?token=hunter2&a=1"],
            &["app", "http://host/?token=***&a=1"],
        ),
        (
            &["sh", "-c", "mysql -phunter2 db && X_SECRET='hunter2' app"],
            &["sh", "-c", "mysql -p*** db && X_SECRET='***' app"],
        ),
        (
            &["app", "{\"password\":\"hunter2\"}"],
            &["app", "{\"password\":\"***\"}"],
        ),
        (
            &["app", "ghp_0123456789abcdefghij0123"],
            &["app", "ghp_***"],
        ),
    ] {
        assert_eq!(line(given), expected);
    }
}

#[test]
fn what_is_no_secret_stays() {
    for words in [
        &["mysqld", "--port=3306", "-p", "3306"][..],
        &[
            "app",
            "--password-file=/etc/p",
            "--token-count=5",
            "--max-tokens=9",
        ],
        &[
            "app",
            "--no-password",
            "input.txt",
            "--password=$PASSWORD",
            "PWD=/root",
        ],
        &[
            "git",
            "clone",
            "ssh://git@host/x.git",
            "https://host:8080/a@b",
        ],
        &["gcc", "-passes=2", "-pipe", "-O2", "pass.c", "a=b:c"],
        &[
            "python3",
            "-c",
            "import time\nfor i in range(60):\n    b = bytearray(8 << 20)\n",
        ],
        &["ffmpeg", "-i", "http://h/a.mp4", "sk-short"],
    ] {
        assert_eq!(line(words), words);
    }
    assert_eq!(
        masked_variable("JAVA_OPTS", "-Xmx1g -Dx.password=a"),
        "-Xmx1g -Dx.password=***"
    );
    assert_eq!(masked_variable("MALLOC_CONF", "a:1,b:2"), "a:1,b:2");
}

/// 50,000 random lines around one secret, by a seeded generator.
#[test]
fn no_secret_survives_in_random_command_lines() {
    let mut state = 7_u64;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let pieces = [
        "",
        "-",
        "--",
        "a",
        "=",
        ":",
        "//",
        "@",
        "'",
        "\"",
        " ",
        "\n",
        "ä",
        "pass",
        "password",
        "mysql",
        "-p",
        "$",
        "http://",
        "&",
        "Authorization:",
        "/",
        ";",
        "***",
    ];
    let secret = "Zq8secretvalue";
    for _ in 0..50_000 {
        let mut noise = |most: usize| -> String {
            let length = random(most);
            (0..length).map(|_| pieces[random(pieces.len())]).collect()
        };
        let (before, after) = (noise(6), noise(6));
        let name = ["--password", "DB_PASSWORD", "-Dx.token", "--api-key"][random(4)];
        let words = [before, format!("{name}={secret}"), after];
        let seen = masked(&words);
        assert_eq!(seen.len(), 3);
        assert!(!seen.concat().contains(secret), "{words:?} {seen:?}");
        assert_eq!(masked(&seen), seen, "{words:?}");
        let script = format!("app --db-password {secret} {}; {name}={secret}", words[2]);
        assert!(!masked_text(&script).contains(secret), "{script}");
    }
}
