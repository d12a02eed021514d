import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.maven.AbstractMavenLifecycleParticipant;
import org.apache.maven.execution.MavenSession;
import org.apache.maven.model.Plugin;
import org.apache.maven.model.PluginExecution;
import org.apache.maven.project.MavenProject;
import org.codehaus.plexus.util.xml.Xpp3Dom;

/**
 * An extension of Maven. What the poms say of Surefire that selects tests, skips them, stops after a failure, repeats
 * or reorders them, or hides that they failed has no effect; its names go to a file in HOME. The command line's
 * properties decide instead.
 */
public class TestSettings extends AbstractMavenLifecycleParticipant {
    private static final List<String> NAMES = Arrays.asList(
            "skip", "skipExec", "skipTests", "testFailureIgnore", "failIfNoTests", "failIfNoSpecifiedTests",
            "skipAfterFailureCount", "rerunFailingTestsCount", "failOnFlakeCount", "groups", "excludedGroups",
            "includes", "excludes", "includesFile", "excludesFile", "test", "runOrder", "runOrderRandomSeed",
            "suiteXmlFiles", "dependenciesToScan", "reportNameSuffix", "reportsDirectory", "disableXmlReport",
            "includeJUnit5Engines", "excludeJUnit5Engines");

    @Override
    public void afterProjectsRead(MavenSession session) {
        Set<String> takenBack = new TreeSet<>();
        for (MavenProject project : session.getProjects()) {
            for (Plugin plugin : project.getBuildPlugins()) {
                if ("maven-surefire-plugin".equals(plugin.getArtifactId())) {
                    takeBack(plugin.getConfiguration(), takenBack);
                    for (PluginExecution execution : plugin.getExecutions()) {
                        takeBack(execution.getConfiguration(), takenBack);
                    }
                }
            }
        }
        StringBuilder names = new StringBuilder();
        for (String name : takenBack) {
            names.append(names.length() == 0 ? "" : ",").append('"').append(name).append('"');
        }
        String record = "{\"taken_back\":[" + names + "],\"collected\":null}";
        try {
            File file = new File(System.getProperty("user.home"), "test-settings.json");
            Files.write(file.toPath(), record.getBytes(StandardCharsets.UTF_8));
        } catch (java.io.IOException error) {
            // tests may have no HOME that they can write
        }
    }

    private static void takeBack(Object configuration, Set<String> takenBack) {
        if (!(configuration instanceof Xpp3Dom)) {
            return;
        }
        Xpp3Dom dom = (Xpp3Dom) configuration;
        for (int at = dom.getChildCount() - 1; at >= 0; at--) {
            String name = dom.getChild(at).getName();
            if (NAMES.contains(name)) {
                dom.removeChild(at);
                takenBack.add(name);
            }
        }
    }
}
